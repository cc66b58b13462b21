"""Many runs, one process."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tdbg_lab.records import Finding, RuleStatus
from tdbg_lab.rules import Rule
from tdbg_lab.rules.presence import Unattended
from tdbg_lab.rules.runner import Runner
from tdbg_lab.rules.watching import Watch
from tdbg_lab.store import read_findings, read_rule_states
from tdbg_lab.store.layout import read_json, write_json

from .made import Made

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class High(Rule):
    def check(self, step: int, run: Any) -> Finding | None:
        values = run.scalars("loss/x").values
        return self.finding(step, f"{values[-1]:g}") if len(values) and values[-1] > 1 else None


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    return Watch(tmp_path, lambda: [High()], clock=itertools.count(0.0, 10.0).__next__)


def test_every_running_run_is_looked_after_and_let_go_at_its_end(tmp_path: Path, watch: Watch) -> None:
    made = [Made(tmp_path / "group" / str(number)) for number in range(3)]
    for number, run in enumerate(made):
        run.step(0, {"loss/x": 0.0}).step(1, {"loss/x": float(number)}).step(2, {"loss/x": 0.0})
    told: list[tuple[str, str]] = []

    def wakes():
        yield
        assert watch.runs == [], "each may be about to start rules of its own"
        yield
        assert sorted(path.name for path in watch.runs) == ["0", "1", "2"]
        late = Made(tmp_path / "late")
        late.step(0, {"loss/x": 7.0}).step(1, {"loss/x": 0.0})
        yield
        yield
        made[2].end()
        for _ in range(10_000):
            yield
            if not any(path.name == "2" for path in watch.runs):
                break

    watch.run(wakes(), lambda path, finding: told.append((path.name, finding.message)))
    assert sorted(told) == [("2", "2"), ("late", "7")]
    assert [one.message for one in read_findings(made[2].path)] == ["2"]
    states = {run.path.name: read_rule_states(run.path)[0].status for run in made}
    assert states == {"0": RuleStatus.STOPPED, "1": RuleStatus.STOPPED, "2": RuleStatus.ISSUE_FOUND}


def test_folder_that_takes_long_to_look_through_is_looked_through_more_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    watch = Watch(tmp_path, lambda: [High()], clock=lambda: now_s)
    monkeypatch.setattr(time, "thread_time", itertools.count(0.0, 2.0).__next__)
    watch.work()
    Made(tmp_path / "run")
    now_s = 39.0
    watch.work()
    assert watch.runs == [], "two seconds of a processor in less than forty"
    now_s = 41.0
    watch.work()
    now_s = 82.0
    watch.work()
    assert [path.name for path in watch.runs] == ["run"]
    watch.close()


def test_run_with_a_runner_of_its_own_is_left_to_it(tmp_path: Path, watch: Watch) -> None:
    made = Made(tmp_path / "run")
    made.step(0, {"loss/x": 7.0})
    assert not is_attended(made.path)
    watch.work()
    own = Runner(made.path, [High()])
    own.work(last=True)
    assert is_attended(made.path)
    watch.work()
    assert watch.runs == [], "it had none only while it began"
    own.close(stopped=True)
    assert not is_attended(made.path)
    watch.work()
    assert watch.runs == []
    watch.work()
    assert watch.runs == [made.path]
    watch.close()


def test_run_that_cannot_be_checked_does_not_end_the_others(tmp_path: Path) -> None:
    def rules() -> list[Rule]:
        if next(count) == 0:
            raise RuntimeError("odd")
        return [High()]

    count = itertools.count()
    for name in "ab":
        Made(tmp_path / name).step(0, {"loss/x": 7.0}).step(1, {"loss/x": 0.0})
    watch = Watch(tmp_path, rules, clock=itertools.count(0.0, 10.0).__next__)
    watch.work()
    watch.work()
    assert len(watch.runs) == 1
    assert [one.message for one in read_findings(watch.runs[0])] == ["7"]
    watch.close()


def test_run_that_is_far_behind_holds_up_neither_the_others_nor_the_end(tmp_path: Path) -> None:
    behind, other = Made(tmp_path / "a"), Made(tmp_path / "b")
    for step in range(50):
        behind.step(step, {"loss/x": 0.0})
    other.step(0, {"loss/x": 7.0}).step(1, {"loss/x": 0.0})
    watch = Watch(tmp_path, lambda: [High()], clock=itertools.count(0.0, 10.0).__next__)
    watch.work()
    watch.work()
    assert [one.message for one in read_findings(other.path)] == ["7"]
    for checked in range(1, 20):
        behind_runner = watch._watched[behind.path].runner
        assert behind_runner._feed.view.step == checked - 1, "a step at each turn, and none is left out"
        watch.work()
    watch.close()
    (state,) = read_rule_states(behind.path)
    assert (state.status, state.step_checked) == (RuleStatus.STOPPED, 19)


def test_stand_in_leaves_when_the_runner_that_was_frozen_is_back(tmp_path: Path, watch: Watch) -> None:
    """Its sign of life was too old: both looked after the run, told everything twice and acted twice."""
    made = Made(tmp_path / "run")
    made.step(0, {"loss/x": 0.0})
    own = Runner(made.path, [High()])
    own.work()
    age_sign_of_life(made.path, by_s=60)
    watch.work()
    watch.work()
    assert watch.runs == [made.path]
    made.step(1, {"loss/x": 0.0})
    own._status_ns = 0
    own.work()
    watch._watched[made.path].runner._looked_ns = 0
    watch.work()
    assert watch.runs == []
    assert not own.is_relieved(), "who does not stand in stays"
    own.close(stopped=True)
    assert read_rule_states(made.path)[0].status is RuleStatus.STOPPED


def test_of_two_that_stand_in_one_stays(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    made.step(0, {"loss/x": 0.0})
    first, second = (Runner(made.path, [High()], stands_in=True) for _ in range(2))
    assert not first.is_relieved()
    first.work()
    assert not first.is_relieved()
    second.work()
    first._looked_ns = 0
    assert (first.is_relieved(), second.is_relieved()) == (True, False)
    wakes = iter([None])
    first._looked_ns = 0
    assert first.run(wakes, lambda: None) == "another runner looks after the run"
    second._looked_ns = 0
    assert not second.is_relieved(), "who leaves writes no last word"
    second.close(stopped=True)


def test_runner_on_a_machine_whose_clock_is_wrong_is_left_alone(tmp_path: Path, watch: Watch) -> None:
    """Its signs of life seem old, but they change."""
    made = Made(tmp_path / "run")
    made.step(0, {"loss/x": 0.0})
    own = Runner(made.path, [High()])
    for _ in range(3):
        own._status_ns = 0
        own.work()
        age_sign_of_life(made.path, by_s=20)
        assert not is_attended(made.path)
        watch.work()
        assert watch.runs == []
    watch.work()
    assert watch.runs == [made.path], "it says nothing any more"
    watch.close()


def is_attended(run_path: Path) -> bool:
    return Unattended().for_s(run_path, 0.0) is None


def age_sign_of_life(run_path: Path, *, by_s: float) -> None:
    file = run_path / "findings" / "status.json"
    status = read_json(file)
    write_json(file, {**status, "heartbeat_ns": status["heartbeat_ns"] - int(by_s * 1e9)})
