"""A run that grows, is sealed, or is replaced while it is read."""

from __future__ import annotations

import errno
import os
import shutil
import threading

import numpy as np
import pytest
from store.rows import rows

from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, create_run
from tdbg_lab.testing import FakeTraining, fake_run


def test_run_reads_what_is_new_when_refreshed(tmp_path):
    path = create_run(tmp_path / "run").path
    run = open_run(path)
    assert run.last_step == -1
    writer = RankWriter(path)
    for step in range(300):  # over a rotation and its sealing
        writer.append(rows(step))
        assert run.refresh(), step
        assert run.last_step == step
    writer.close()
    run.refresh()
    version = run.version
    assert not run.refresh()
    assert run.version == version
    assert run.scalars("loss").values.tolist() == [float(step) for step in range(300)]
    assert run.problems == []


def test_sealing_changes_no_answer(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)
    for step in range(20):
        writer.append(rows(step))
    run = open_run(path)
    before = run.to_pandas(), run.tensor("activation/b").stats(7), run.tensor("a.weight").histograms().block
    writer.close()
    run.refresh()
    after = run.to_pandas(), run.tensor("activation/b").stats(7), run.tensor("a.weight").histograms().block
    assert before[0].equals(after[0])
    for old, new in zip(before[1:], after[1:], strict=True):
        for name in ("count", "mean", "hist_bins", "hist_counts", "channel_mean", "channel_zero_frac"):
            np.testing.assert_array_equal(getattr(old, name), getattr(new, name))


def test_another_run_in_the_same_place_is_read_anew(tmp_path):
    path = fake_run(tmp_path / "run", steps=5, layers=2)
    run = open_run(path)
    shutil.rmtree(path)
    fake_run(path, steps=3, layers=1, name="other")
    assert run.refresh()
    assert run.info.name == "other"
    assert run.last_step == 2
    assert "layer1.weight" not in run.tensor_names()


def test_rank_that_is_out_of_sight_for_a_while_comes_back(tmp_path):
    """As on a network file system: its directory is then as old as it was, and had been listed."""
    path = fake_run(tmp_path / "run", steps=3)
    rank, away = path / "rank-00000", tmp_path / "away"
    os.utime(rank, (0, 0))
    run = open_run(path)
    rank.rename(away)
    assert run.refresh()
    assert not len(run.steps())
    away.rename(rank)
    assert run.refresh()
    assert run.steps().tolist() == [0, 1, 2]


def test_rank_whose_directory_could_not_be_listed_is_listed_again(tmp_path, monkeypatch):
    path = fake_run(tmp_path / "run", steps=3)
    os.utime(path / "rank-00000", (0, 0))
    run = open_run(path)
    really = os.scandir

    def stale(directory):
        if str(directory).endswith("rank-00000"):
            raise OSError(errno.ESTALE, "Stale file handle")
        return really(directory)

    os.utime(path / "rank-00000", (1, 1))
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", stale)
        assert run.refresh()
    assert run.refresh()
    assert run.steps().tolist() == [0, 1, 2]


def test_threads_read_while_the_run_grows(tmp_path):
    training = FakeTraining(tmp_path / "run", layers=1)
    training.step()
    run = open_run(training.path)
    errors: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                run.refresh()
                steps = run.scalars("loss/CrossEntropyLoss").steps
                assert steps.tolist() == list(range(len(steps)))
                run.overview(kind="weight", column="q50")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        training.step()
    training.end()
    done.set()
    for thread in threads:
        thread.join()
    assert errors == []
    run.refresh()
    assert run.last_step == 60


def test_refresh_lists_a_directory_only_when_it_changed(tmp_path, monkeypatch):
    from tdbg_lab.store import state

    path = create_run(tmp_path / "run").path
    writer = RankWriter(path, seal=False)
    writer.append(rows(0))
    os.utime(writer.path, ns=(10**18, 10**18))
    run = open_run(path)
    monkeypatch.setattr(state, "list_segments", lambda _: pytest.fail("listed though nothing changed"))
    assert not run.refresh()
    writer.append(rows(1))
    assert run.refresh()
    assert run.last_step == 1
    monkeypatch.undo()
    writer.close()
    RankWriter(path, seal=False).append(rows(2))
    assert run.refresh()
    assert run.last_step == 2


def test_segment_sealed_between_listing_and_reading_keeps_its_rows(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)
    writer.append(rows(0))
    os.utime(writer.path, ns=(10**18, 10**18))
    run = open_run(path)
    writer.close()
    os.utime(writer.path, ns=(10**18, 10**18))  # as if the listing had been made before
    run.refresh()
    assert run.steps().tolist() == [0]
    run.refresh()
    assert run.steps().tolist() == [0]
    assert run.problems == []


def test_sealed_segment_that_was_replaced_is_read_anew(tmp_path):
    path = create_run(tmp_path / "run").path
    for step in (0, 5):
        writer = RankWriter(path)
        writer.append(rows(step))
        writer.close()
        if step == 0:
            run = open_run(path)
            assert run.steps().tolist() == [0]
            shutil.rmtree(writer.path)
    assert run.refresh()
    assert run.steps().tolist() == [5]


def test_closed_segment_that_waits_for_sealing_does_not_keep_its_lists(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path, seal=False)
    for step in range(260):
        writer.append(rows(step))
    run = open_run(path)
    first, second = run._reader.state._segments.values()
    assert not first._batches
    assert len(second._batches) == 4
    assert run.tensor("a.weight").histograms().block.count.sum() == 260 * 6
    RankWriter(path).close()  # seals both behind the reader's back
    assert run.tensor("a.weight").histograms().block.count.sum() == 260 * 6
    assert run.problems == []
    assert run.steps().tolist() == list(range(260))
