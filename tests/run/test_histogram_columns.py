"""The histograms of a run that grows, in few columns: right at each moment, and read once."""

from __future__ import annotations

import shutil
from dataclasses import fields

import numpy as np
import pytest
from store.rows import rows

from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, create_run
from tdbg_lab.store.live import LiveStats

MOST = 8


@pytest.fixture
def path(tmp_path):
    return create_run(tmp_path / "run").path


def written(path, first, last, **more):
    """A session of the writer, in a segment of its own."""
    writer = RankWriter(path, **more)
    for step in range(first, last):
        writer.append(rows(step))
    writer.close()


def same(found, expected):
    for each in fields(expected):
        one, other = getattr(found, each.name), getattr(expected, each.name)
        if each.name in {"mean", "std", "l1", "l2"}:  # merged in another order
            np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=each.name)
        else:
            np.testing.assert_array_equal(one, other, each.name)


def check(tensor, n, **more):
    """They cover all `n` steps, each in its place."""
    ends, block = tensor.histogram_columns(MOST, **more)
    assert len(ends) == len(block) <= MOST
    assert ends[-1] == n - 1
    width = int(ends[0]) + 1
    assert width & (width - 1) == 0
    assert (np.diff(ends[:-1]) == width).all()
    assert len(ends) > MOST // 2 or width == 1
    same(block, tensor.histograms_until(ends, **more))


def test_they_are_those_merged_at_once_however_the_run_grows(path):
    run = open_run(path)
    done = 0
    for n in (1, 2, 5, 8, 9, 16, 17, 40, 41, 200, 201, 290):
        written(path, done, n)
        run.refresh()
        check(run.tensor("a.weight"), n)
        done = n


def test_what_is_complete_is_not_read_again(path, monkeypatch):
    written(path, 0, 200)
    run = open_run(path)
    tensor = run.tensor("a.weight")
    tensor.histogram_columns(MOST)
    written(path, 200, 203)
    run.refresh()
    firsts, read = [], run._reader.part

    def spied(*asked, **more):
        firsts.append(more["steps"][0])
        return read(*asked, **more)

    monkeypatch.setattr(run._reader, "part", spied)
    ends, _ = tensor.histogram_columns(MOST)
    assert ends[-1] == 202
    assert min(firsts) == 192  # the last of the complete columns of 32 ends at 191


def test_a_step_that_is_written_again_counts(path):
    written(path, 0, 100)
    run = open_run(path)
    tensor = run.tensor("a.weight")
    before = tensor.histogram_columns(MOST)[1].count.sum()
    written(path, 10, 12)  # as after a restart from a checkpoint
    run.refresh()
    check(tensor, 100)
    assert tensor.histogram_columns(MOST)[1].count.sum() == before + 2 * 6


def test_a_step_still_in_flight_is_not_kept(path):
    writer = RankWriter(path)
    for step in range(17):
        writer.append(rows(step))
    run = open_run(path)
    tensor = run.tensor("a.weight")
    tensor.histogram_columns(MOST)
    writer.append(rows(16, micro=1))
    run.refresh()
    _, block = tensor.histogram_columns(MOST)
    writer.close()
    assert block.count.sum() == 18 * 6


def test_ranks_are_read_together_and_apart(path):
    for rank in range(2):
        written(path, 0, 50 + rank, rank=rank)
    run = open_run(path)
    tensor = run.tensor("a.weight")
    check(tensor, 51)
    written(path, 50, 60, rank=0)  # one that was behind
    run.refresh()
    check(tensor, 60)
    check(tensor, 51, rank=1)
    check(tensor, 60, rank=0)


def test_another_run_in_the_same_place_is_read_anew(path):
    written(path, 0, 100)
    run = open_run(path)
    run.tensor("a.weight").histogram_columns(MOST)
    shutil.rmtree(path)
    create_run(path)
    written(path, 0, 30)
    run.refresh()
    check(run.tensor("a.weight"), 30)


def test_no_columns_cannot_be_asked_for(path):
    written(path, 0, 3)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        open_run(path).tensor("a.weight").histogram_columns(0)


def test_a_tensor_without_statistics_has_none(path):
    written(path, 0, 3)
    ends, block = open_run(path).tensor("a.weight").histogram_columns(MOST, mode="eval")
    assert len(ends) == len(block) == 0


def test_what_cannot_be_read_for_a_moment_leaves_no_gap(path, monkeypatch):
    written(path, 0, 5, seal=False)
    run = open_run(path)

    def unreadable(_self):
        raise OSError("not now")

    with monkeypatch.context() as moment:
        moment.setattr(LiveStats, "_read_again", unreadable)
        _, block = run.tensor("a.weight").histogram_columns(MOST)
        assert not block.count.any()
    check(run.tensor("a.weight"), 5)
