"""Steps made anew after a checkpoint: the later attempt counts, the earlier one stays in its files."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import numpy as np
import pytest

from tdbg_lab.errors import StepNotFoundError
from tdbg_lab.records import Finding, Mode, Severity
from tdbg_lab.run import open_run
from tdbg_lab.store import FindingsWriter, RankWriter, create_run, tail
from tdbg_lab.store.attempts import Attempts, after_checkpoint, begin_attempt, read_attempts

from .rows import KEYS, rows

ANEW = 1000
"""Added to the values of the second attempt."""


@pytest.fixture
def path(tmp_path):
    return create_run(tmp_path / "run").path


def write(writer, steps, *, added=0, mode=Mode.TRAIN):
    for step in steps:
        writer.append(rows(step, seed=step + added, mode=mode))
        writer.write_raw(step, {"x": np.array([step + added, 0])}, mode=mode)
    writer.flush()


def losses(run, **chosen):
    found = run.scalars("loss", **chosen)
    return dict(zip(found.steps.tolist(), found.values.tolist(), strict=True))


@pytest.mark.parametrize("sealed", [False, True], ids=["cut off", "ended"])
def test_steps_made_anew_take_the_place_of_those_of_the_attempt_before(path, sealed):
    first = RankWriter(path, seal=sealed)
    write(first, range(8))
    if sealed:
        first.close()
    run = open_run(path)
    assert run.last_step == 7
    second = RankWriter(path, seal=sealed, goes_on_at=after_checkpoint(5))
    write(second, range(5, 7), added=ANEW)
    expected = {step: step + (ANEW if step >= 5 else 0) for step in range(7)}
    for one in (run, open_run(path)):  # one that was open all the while
        one.refresh()
        assert one.steps().tolist() == list(range(7))
        assert losses(one) == expected
        assert {step: one.tensor("x").value(step)[0] for step in range(7)} == expected
        with pytest.raises(StepNotFoundError):
            one.tensor("x").value(7)
        assert one.stats([KEYS[0].name], columns=["count"])["count"].tolist() == [6] * 7, (
            "none is merged with its like"
        )
        assert one.overview(kind="loss", column="mean").steps.tolist() == list(range(7))
    assert (path / "rank-00000" / "raw" / "step-000000000007.safetensors").exists(), "nothing is deleted"
    second.close()
    run.refresh()
    assert losses(run) == expected


def test_an_evaluation_of_the_checkpoint_stands(path):
    first = RankWriter(path)
    write(first, range(6))
    write(first, [3, 5, 6], mode=Mode.EVAL)
    first.close()
    RankWriter(path, goes_on_at=after_checkpoint(5)).close()
    run = open_run(path)
    assert run.steps(mode="train").tolist() == [0, 1, 2, 3, 4]
    assert run.steps(mode="eval").tolist() == [3, 5]
    assert list(losses(run, mode="eval")) == [3, 5]


def test_each_rank_has_attempts_of_its_own(path):
    for rank in range(2):
        writer = RankWriter(path, rank)
        write(writer, range(4))
        writer.close()
    RankWriter(path, 1, goes_on_at=after_checkpoint(2)).close()
    run = open_run(path)
    assert [list(losses(run, rank=rank)) for rank in range(2)] == [[0, 1, 2, 3], [0, 1]]


def test_whoever_follows_the_run_from_its_beginning_sees_each_step_once(path):
    first = RankWriter(path, seal=False)
    write(first, range(6))
    early = tail(path)
    assert [read_step(next(early)) for _ in range(6)] == list(range(6))
    second = RankWriter(path, seal=False, goes_on_at=after_checkpoint(4))
    write(second, range(4, 6), added=ANEW)
    late = [chunk for chunk in tail_once(path) if chunk is not None]
    assert [read_step(chunk) for chunk in late] == list(range(6))
    assert [chunk.table["mean"][-1].as_py() for chunk in late[4:]] == [4 + ANEW, 5 + ANEW]
    assert next(early) is None
    assert [read_step(next(early)) for _ in range(2)] == [4, 5], "what comes goes on"
    assert next(early) is None


def tail_once(path):
    for chunk in tail(path):
        if chunk is None:
            return
        yield chunk


def read_step(chunk):
    return chunk.table["step"][0].as_py()


def test_raw_values_written_before_any_attempt_began_again_are_found(path):
    """A run that goes on without a checkpoint, after one that went on with one."""
    for goes_on_at in (None, after_checkpoint(2), None):
        writer = RankWriter(path, goes_on_at=goes_on_at)
        write(writer, range(2, 4) if goes_on_at else range(3), added=ANEW if goes_on_at else 0)
        writer.close()
    assert {file.attempt for file in open_run(path)._reader.raw.at(2)} == {2}
    assert read_attempts(path / "rank-00000").latest == 2


def test_an_attempt_that_cuts_more_takes_the_place_of_those_before(path):
    rank = path / "rank-00000"
    rank.mkdir()
    for segment, step in ((2, 10), (5, 20), (7, 15)):
        found = begin_attempt(rank, segment, after_checkpoint(step))
    assert [(one.segment, one.first_step) for one in found.known] == [(2, (10, 11, 11)), (7, (15, 16, 16))]
    assert read_attempts(rank) == found
    assert [found.end(segment, 0) for segment in (1, 2, 6)] == [10, 15, 15]
    assert found.end(7, 0) > 2**60


ROW = {"segment": 5, "first_step": [1, 2, 2], "time_ns": 1}


def described(row, modes=("train", "eval", "predict")):
    return json.dumps({"attempts": [row], "modes": modes})


@pytest.mark.parametrize(
    ("text", "standing"),
    [
        (described(ROW), [0]),
        ("", [0, 1, 2]),
        ("[]", [0, 1, 2]),
        ("{}", [0, 1, 2]),
        ("[" * 100_000, [0, 1, 2]),
        (described(1), [0, 1, 2]),
        (described(ROW, modes=["eval"]), [0, 1, 2]),
        (described(ROW | {"first_step": [1, 2]}), [0, 1, 2]),
        (described(ROW | {"first_step": [1, 2, 1e3]}), [0, 1, 2]),
        (described(ROW | {"first_step": {"a": 1}}), [0, 1, 2]),
        (described(ROW | {"segment": True}), [0, 1, 2]),
        (described(ROW | {"time_ns": -1}), [0, 1, 2]),
    ],
)
def test_what_no_writer_wrote_cuts_nothing(path, text, standing):
    writer = RankWriter(path)
    write(writer, range(3))
    writer.close()
    (path / "rank-00000" / "attempts.json").write_text(text)
    assert open_run(path).steps().tolist() == standing
    assert (read_attempts(path / "rank-00000") == Attempts()) is (len(standing) == 3)


def test_findings_about_steps_made_anew_are_of_the_attempt_before(path):
    write(RankWriter(path, seal=False), range(10))
    found = {step: Finding("exploding_tensor", Severity.CRITICAL, step, 9, "", time_ns=1) for step in (3, 6)}
    writer = FindingsWriter(path)
    for finding in found.values():
        writer.append(finding)
    RankWriter(path, goes_on_at=after_checkpoint(5)).close()
    assert open_run(path).findings() == [found[3]]
    late = replace(found[6], time_ns=time.time_ns() + 1)
    writer.append(late)
    writer.close()
    assert open_run(path).findings() == [found[3], late]


def test_attempts_are_read_as_they_were_written(path):
    rank = path / "rank-00000"
    rank.mkdir()
    begin_attempt(rank, 3, dict.fromkeys(Mode, 7))
    (found,) = read_attempts(rank).known
    assert (found.segment, found.first_step) == (3, (7, 7, 7))
    assert 0 <= time.time_ns() - found.time_ns < 10**11
    assert json.loads((rank / "attempts.json").read_text())["modes"] == ["train", "eval", "predict"]
