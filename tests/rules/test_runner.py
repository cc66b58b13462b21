"""The runner on runs that grow, in this process."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from tdbg_lab.actions import RunCallable, StopTraining
from tdbg_lab.records import Finding, RuleStatus, Severity
from tdbg_lab.rules import DeadRelu, resolve_rules
from tdbg_lab.rules.presence import Presence
from tdbg_lab.rules.runner import Runner
from tdbg_lab.store import RankWriter, pending, read_findings, read_rule_states, request
from tdbg_lab.store.attempts import after_checkpoint

from .made import Made
from .running import Above, Broken, latest, state_of


def test_runner_writes_findings_states_and_costs(made: Made) -> None:
    for step in range(10):
        made.step(step, {"loss/x": 5.0 if step > 6 else 0.0})
    runner = Runner(made.path, [Above(), Broken(), DeadRelu()])
    runner.work(last=True)
    runner.close()
    (finding,) = latest(made.path).values()
    assert (finding.rule, finding.step_first, finding.step_last) == ("above", 7, 9)
    states = {state.rule: state for state in read_rule_states(made.path)}
    assert states["above"].status is RuleStatus.ISSUE_FOUND
    assert states["above"].findings == 1
    assert states["above"].step_checked == 9
    assert states["above"].cost_ms > 0
    assert states["above"].parameters == {"limit": 1.0}
    assert states["broken"].status is RuleStatus.ERROR
    assert states["broken"].reason.startswith("ZeroDivisionError at step 2 (running.py, line ")
    assert states["broken"].reason.endswith("): oh no. The rule is switched off, the others go on.")
    assert states["broken"].step_checked == 1
    assert states["dead_relu"].status is RuleStatus.NOT_APPLICABLE
    assert "activations" in states["dead_relu"].reason


def test_quiet_run_ends_without_issue(made: Made) -> None:
    made.step(0, {"loss/x": 0.0})
    runner = Runner(made.path, [Above()])
    runner.run(iter([None]), lambda: "over")
    assert state_of(made.path, "above").status is RuleStatus.NO_ISSUE
    assert not list((made.path / "findings").glob("*.jsonl"))


def test_lasting_finding_is_written_seldom(made: Made) -> None:
    runner = Runner(made.path, [Above()])
    for step in range(200):
        made.step(step, {"loss/x": 5.0})
        runner.work(last=True)
    runner.close()
    lines = read_findings(made.path)
    assert len(lines) < 10
    assert lines[-1].step_last == 199


def test_finding_that_could_not_be_written_is_written_when_there_is_room(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, full = os.write, [True]

    def write(descriptor: int, data: bytes) -> int:
        if full:
            raise OSError(28, "No space left on device")
        return written(descriptor, data)

    monkeypatch.setattr("tdbg_lab.rules.runner._STATUS_NS", 0)
    monkeypatch.setattr("tdbg_lab.rules.runner._HEARTBEAT_NS", 0)
    made.step(0, {"loss/x": 5.0})
    runner = Runner(made.path, [Above()])
    with monkeypatch.context() as disk:
        disk.setattr("os.write", write)
        runner.work(last=True)
        assert read_findings(made.path) == []
        full.clear()
        runner.work()
        (finding,) = read_findings(made.path)
    assert finding.message == "5"


def test_finding_that_was_written_in_part_is_written_again(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, full = os.write, [True]

    def write(descriptor: int, data: bytes) -> int:
        return written(descriptor, data[:40] if full and full.pop() else data)

    made.step(0, {"loss/x": 5.0})
    runner = Runner(made.path, [Above()])
    monkeypatch.setattr("os.write", write)
    runner.work(last=True)
    runner.close()
    (finding,) = read_findings(made.path)
    assert finding.message == "5"


def test_another_runner_goes_on_without_repeating(made: Made) -> None:
    values = [0, 5, 5, 0, 0, 0, 0, 0, 0, 5, 5, 5, 0, 0, 0, 0, 0, 0, 0, 5]
    whole = Made(made.path.parent / "whole")
    for step, value in enumerate(values):
        whole.step(step, {"loss/x": value})
    truth = {finding.id for finding in whole.check(Above())[0]}
    assert len(truth) == 3
    for step, value in enumerate(values):
        made.step(step, {"loss/x": value})
        Runner(made.path, [Above()]).work(last=True)  # dies without a word after every step
    assert set(latest(made.path)) == truth


def test_steps_made_anew_after_a_checkpoint_are_checked_anew(made: Made) -> None:
    for step, value in enumerate([0, 0, 0, 0, 5, 5]):
        made.step(step, {"loss/x": value})
    early = Runner(made.path, [Above()])
    early.work(last=True)
    early.close()
    (before,) = latest(made.path).values()
    assert before.step_first == 4
    made.writers[0] = RankWriter(made.path, goes_on_at=after_checkpoint(3))
    assert latest(made.path) == {}
    for step, value in enumerate([7, 0, 0, 0], 3):
        made.step(step, {"loss/x": value})
    for _ in range(2):
        late = Runner(made.path, [Above()])
        late.work(last=True)
        late.close()
        (found,) = latest(made.path).values()
        assert (found.step_first, found.message) == (3, "7")


def test_runner_takes_no_part_in_an_attempt_that_it_did_not_begin_with(made: Made) -> None:
    for step in range(6):
        made.step(step, {"loss/x": 0})
    presence, runner = Presence(made.path), Runner(made.path, [Above()])
    runner.work()
    made.writers[0] = RankWriter(made.path, goes_on_at=after_checkpoint(3))
    made.step(3, {"loss/x": 5})
    assert presence.over() == "the run goes on from a checkpoint"
    runner.work(last=True)
    assert latest(made.path) == {}


def test_actions_are_not_repeated_by_another_runner(made: Made) -> None:
    made.step(0, {"loss/x": 5.0})
    for _ in range(3):
        Runner(made.path, [Above(actions=StopTraining())]).work(last=True)
    assert len(pending(made.path)) == 1


def test_action_that_fails_is_noted_and_hurts_nobody(made: Made) -> None:
    def fail(finding: Finding, context: Any) -> None:
        raise RuntimeError("no network")

    made.step(0, {"loss/x": 5.0})
    runner = Runner(made.path, [Above(actions=(RunCallable(function=fail), StopTraining()))])
    runner.work(last=True)
    runner.close()
    state = state_of(made.path, "above")
    assert state.status is RuleStatus.ISSUE_FOUND
    assert state.reason == "RunCallable failed 2 times and is not tried again: no network"
    assert [one.kind for one in pending(made.path)] == ["stop"]


def test_action_that_was_to_be_tried_again_is_by_another_runner(made: Made) -> None:
    """As where the runner was killed while the mail server was down."""
    calls: list[int] = []

    def refuse_twice(finding: Finding, context: Any) -> None:
        calls.append(finding.step_first)
        if len(calls) <= 2:
            raise RuntimeError("no network")

    rules = [Above(actions=RunCallable(function=refuse_twice))]
    for tries, words in (
        (1, "is tried again: no"),
        (2, "is tried again: no"),
        (3, "performed at try 3; before"),
    ):
        for step in (2 * tries, 2 * tries + 1):  # a step is over when the next one comes
            made.step(step, {"loss/x": 5.0})
        runner = Runner(made.path, rules)
        for _ in range(2):
            runner.work()
            runner._performer.wait()
        runner.work()
        assert len(calls) == tries
        (told,) = (one for one in latest(made.path).values() if one.rule == "actions")
        assert words in told.message
    assert told.message.endswith("it failed: no network")
    Runner(made.path, rules).work(last=True)
    assert len(calls) == 3


@pytest.mark.parametrize("tries", ['"many"', "NaN", "null", "1.5"])
def test_runner_begins_whatever_the_tries_of_an_action_are_said_to_be(made: Made, tries: str) -> None:
    """A run directory may be anybody's."""

    def refuse(finding: Finding, context: Any) -> None:
        raise RuntimeError("no network")

    rules = [Above(actions=RunCallable(function=refuse))]
    for step in range(2):
        made.step(step, {"loss/x": 5.0})
    runner = Runner(made.path, rules)
    runner.work()
    runner._performer.wait()
    runner.work()
    runner.close()
    changed = 0
    for file in (made.path / "findings").iterdir():
        text = file.read_text()
        spoilt = re.sub(r'("tries": ?)1\b', rf"\g<1>{tries}", text)
        changed += spoilt != text
        file.write_text(spoilt)
    assert changed
    Runner(made.path, rules).work(last=True)


def test_stop_on_critical_asks_once_with_the_reason(made: Made) -> None:
    made.step(0, {"loss/x": 5.0})
    runner = Runner(made.path, [Above()], stop_on=Severity.CRITICAL)
    runner.work(last=True)
    (asked,) = pending(made.path)
    assert (asked.kind, asked.reason, asked.by) == ("stop", "5", "rule above")


def test_warnings_do_not_stop_on_critical(made: Made) -> None:
    for step in range(200):
        made.step(step, {"loss/x": 2.3})
    runner = Runner(made.path, resolve_rules("default"), stop_on=Severity.CRITICAL)
    runner.work(last=True)
    assert runner.findings
    assert pending(made.path) == []


@pytest.mark.parametrize("over", [None, "the run has ended"])
def test_runner_that_is_far_behind_stops_when_asked(made: Made, over: str | None) -> None:
    """It checked all there was first: half an hour of a run of a million steps."""
    for step in range(20):
        made.step(step, {"loss/x": 0.0})
    asked = iter([False, False, True])
    runner = Runner(made.path, [Above()])
    assert runner.run(iter([None]), lambda: over, lambda: next(asked)) == "asked to stop"
    state = state_of(made.path, "above")
    assert (state.status, state.step_checked) == (RuleStatus.STOPPED, 2)
    after = Runner(made.path, [Above()])
    after.work(last=True)
    after.close()
    assert state_of(made.path, "above").step_checked == 19


def test_requests_of_others_are_left_alone(made: Made) -> None:
    request(made.path, "stop", by="somebody")
    made.step(0, {"loss/x": 1.0})
    runner = Runner(made.path, [Above()])
    runner.work(last=True)
    assert [one.by for one in pending(made.path)] == ["somebody"]
