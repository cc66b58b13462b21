"""The runner on runs that grow, in this process and in its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle
import numpy as np
import pytest

from tdbg_lab.actions import RunCallable, StopTraining
from tdbg_lab.errors import NotFoundError
from tdbg_lab.records import Finding, Kind, RuleStatus, Severity
from tdbg_lab.rules import DeadRelu, Needs, Rule, launch, resolve_rules
from tdbg_lab.rules.presence import Presence
from tdbg_lab.rules.runner import Runner
from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, pending, read_findings, read_rule_states, read_rule_status, request
from tdbg_lab.store.attempts import after_checkpoint
from tdbg_lab.store.layout import read_json, write_json

from .made import Made

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Above(Rule):
    """Finds a scalar above a limit."""

    limit: float = 1.0

    def needs(self) -> Needs:
        return Needs(kinds=(Kind.LOSS,))

    def check(self, step: int, run: Any) -> Finding | None:
        _, values = run.scalars("loss/x")
        if values[-1] > self.limit:
            return self.finding(step, f"{values[-1]:g}", tensor="loss/x", severity=Severity.CRITICAL)
        return None


@dataclass(frozen=True, kw_only=True)
class Broken(Rule):
    def check(self, step: int, run: Any) -> Finding | None:
        if step == 2:
            raise ZeroDivisionError("oh no")
        return None


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run")


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen]]:
    started: list[subprocess.Popen] = []

    def start(path: Path, *options: str, stdin: bytes | None = None) -> subprocess.Popen:
        command = [sys.executable, "-m", "tdbg_lab.rules", str(path), *options]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        assert process.stdin is not None
        process.stdin.write(stdin or b"")
        process.stdin.close()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.01)
    return pytest.fail("it did not happen in time")


def latest(path: Path) -> dict[str, Finding]:
    return {finding.id: finding for finding in read_findings(path)}


def state_of(path: Path, rule: str) -> Any:
    return next((state for state in read_rule_states(path) if state.rule == rule), None)


def send(*rules: Rule) -> bytes:
    from tdbg_lab.rules import payload

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as a notebook cell would be
    try:
        return payload.pack(rules)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


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
    assert states["broken"].reason.startswith("ZeroDivisionError at step 2 (test_runner.py, line ")
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


def test_live_runner_finds_within_a_second(made: Made, spawn) -> None:
    spawn(made.path, "--rules", "none", "--custom-stdin", stdin=send(Above()))
    wait_for(lambda: state_of(made.path, "above"))
    delays = []
    for step in range(0, 160, 8):  # an episode each time
        for quiet in range(7):
            made.step(step + quiet, {"loss/x": 0.0})
        wait_for(lambda step=step: state_of(made.path, "above").step_checked >= step - 2)
        known = len(latest(made.path))
        begun = time.monotonic()
        made.step(step + 7, {"loss/x": 5.0})
        wait_for(lambda known=known: len(latest(made.path)) > known)
        delays.append(time.monotonic() - begun)
    assert np.median(delays) < 1.0
    made.end()


def test_runner_ends_with_the_run_after_a_last_look(made: Made, spawn) -> None:
    process = spawn(made.path, "--rules", "none", "--custom-stdin", stdin=send(Above()))
    wait_for(lambda: state_of(made.path, "above"))
    made.step(0, {"loss/x": 5.0})
    made.end()
    assert process.wait(20) == 0
    assert len(latest(made.path)) == 1
    assert process.stderr.read() == b""


def test_killed_runner_is_succeeded_by_one_that_repeats_nothing(made: Made, spawn) -> None:
    stop = threading.Event()

    def write() -> None:
        step = 0
        while not stop.is_set():
            made.step(step, {"loss/x": 5.0 if step % 40 < 10 else 0.0})
            step += 1
            stop.wait(0.005)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            process = spawn(made.path, "--rules", "none", "--custom-stdin", stdin=send(Above()))
            before = len(latest(made.path))
            wait_for(lambda before=before: len(latest(made.path)) > before)
            process.send_signal(signal.SIGKILL)
            process.wait()
    finally:
        stop.set()
        writer.join()
    process = spawn(made.path, "--rules", "none", "--custom-stdin", stdin=send(Above()))
    made.end()
    process.wait(30)
    found = latest(made.path)
    truth = {finding.id: finding for finding in made.check(Above())[0]}
    assert set(found) == set(truth)
    assert {i: (f.step_first, f.step_last) for i, f in found.items()} == {
        i: (f.step_first, f.step_last) for i, f in truth.items()
    }


def test_runner_survives_an_interrupt_and_says_stopped_when_asked(made: Made, spawn) -> None:
    process = spawn(made.path, "--rules", "exploding_tensor")
    wait_for(lambda: state_of(made.path, "exploding_tensor"))
    process.send_signal(signal.SIGINT)
    made.step(0, {"loss/x": 1.0})
    wait_for(lambda: state_of(made.path, "exploding_tensor").step_checked == 0)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert state_of(made.path, "exploding_tensor").status is RuleStatus.STOPPED


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


def test_deleted_run_ends_the_runner_quietly(made: Made, spawn) -> None:
    process = spawn(made.path)
    wait_for(lambda: read_rule_status(made.path))
    shutil.rmtree(made.path)
    assert process.wait(20) == 0
    assert process.stderr.read() == b""
    assert not made.path.exists()


def test_run_whose_process_is_gone_ends_the_runner(made: Made, spawn) -> None:
    file = made.path / "run.json"
    info = json.loads(file.read_text())
    made.step(0, {"loss/x": np.nan})
    another = {"process_created_s": 1.0, "process_since_boot_s": 1.0}  # the number belongs to it now
    file.write_text(json.dumps(info | another))
    assert spawn(made.path).wait(20) == 0
    assert len(latest(made.path)) == 1


def test_options_reach_the_rules(made: Made, spawn) -> None:
    options = ["--rules", "dead_relu,exploding_tensor", "--param", "dead_relu.threshold_layer=60", "--once"]
    assert spawn(made.path, *options, "--action", "exploding_tensor=stop").wait(20) == 0
    assert state_of(made.path, "dead_relu").parameters["threshold_layer"] == 60
    assert state_of(made.path, "exploding_tensor") is not None


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--rules", "dead_rely"], b"Did you mean 'dead_relu'"),
        (["--param", "dead_relu.threshold=1"], b"no parameter"),
        (["--param", "nonsense"], b"rule.name=value"),
        (["--action", "dead_relu=explode"], b"RULE=stop"),
    ],
)
def test_wrong_options_are_told(made: Made, spawn, options: list[str], word: bytes) -> None:
    process = spawn(made.path, *options)
    assert process.wait(20) == 2
    assert word in process.stderr.read()


def test_rule_that_cannot_be_made_in_the_runner_is_an_error_beside_the_others(made: Made, spawn) -> None:
    data = send(Above())
    import pickle

    path, packed, actions = pickle.loads(data)
    data = pickle.dumps((path, [("unlucky", b"not a pickle"), *packed], actions))
    assert spawn(made.path, "--rules", "none", "--custom-stdin", "--once", stdin=data).wait(20) == 0
    assert state_of(made.path, "unlucky").status is RuleStatus.ERROR
    assert state_of(made.path, "above").status is RuleStatus.NO_ISSUE


def test_launch_starts_a_runner_that_ends_with_the_run(made: Made) -> None:
    process = launch(made.path, ["exploding_tensor", DeadRelu(patience=3)])
    assert process is not None
    wait_for(lambda: state_of(made.path, "dead_relu"))
    assert state_of(made.path, "dead_relu").parameters["patience"] == 3
    assert os.getsid(process.pid) != os.getsid(0)
    made.end()
    assert process.wait(20) == 0


def test_rules_are_launched_where_no_more_threads_may_be_started(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    made.end()
    monkeypatch.setattr(threading.Thread, "start", refused)
    process = launch(made.path, DeadRelu(patience=3))
    assert process is not None
    assert process.wait(20) == 0
    assert state_of(made.path, "dead_relu").parameters["patience"] == 3


def test_launch_without_rules_starts_nothing(made: Made) -> None:
    assert launch(made.path, "none") is None
    assert launch(made.path, None) is None


def test_launch_tells_wrong_names_to_the_caller(made: Made) -> None:
    with pytest.raises(NotFoundError):
        launch(made.path, "dead_rely")


def test_rule_of_a_script_reaches_the_runner(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, time\n"
        "from dataclasses import dataclass\n"
        "import tdbg_lab as tdbg\n"
        "from tdbg_lab.rules import launch\n"
        "LIMIT = 3\n"
        "@dataclass(frozen=True)\n"
        "class Mine(tdbg.Rule):\n"
        "    def check(self, step, run):\n"
        "        return self.finding(step, f'limit {LIMIT}') if step == 1 else None\n"
        "print(launch(sys.argv[1], Mine()).wait(30))\n"
    )
    made = Made(tmp_path / "run")
    made.step(0, {"loss/x": 1.0}).step(1, {"loss/x": 1.0})
    made.end()
    done = subprocess.run(
        [sys.executable, str(script), str(made.path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0"
    assert [finding.message for finding in latest(made.path).values()] == ["limit 3"]


def test_requests_of_others_are_left_alone(made: Made) -> None:
    request(made.path, "stop", by="somebody")
    made.step(0, {"loss/x": 1.0})
    runner = Runner(made.path, [Above()])
    runner.work(last=True)
    assert [one.by for one in pending(made.path)] == ["somebody"]


@pytest.mark.parametrize("ends", [False, True])
def test_rules_whose_process_was_killed_have_stopped(
    made: Made, monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    """By the system when memory is short, say: the panel said for ever that they check."""
    made.step(0, {"loss/x": 1.0})
    process = launch(made.path, "loss_not_decreasing")
    assert process is not None
    deadline = time.monotonic() + 60
    while not (states := open_run(made.path).rule_states()) and time.monotonic() < deadline:
        time.sleep(0.05)
    monkeypatch.setattr("tdbg_lab.store.findings.RUNNER_SILENCE_NS", 0)
    assert [one.status for one in open_run(made.path).rule_states()] == [RuleStatus.IN_PROGRESS]
    process.kill()
    if ends:
        made.end()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    (state,) = open_run(made.path).rule_states()
    assert (state.status, state.step_checked) == (RuleStatus.STOPPED, states[0].step_checked)
    assert "was killed" in state.reason
    process.wait()


def test_nothing_is_said_of_rules_on_another_machine(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made.step(0, {"loss/x": 1.0})
    Runner(made.path, [Above()]).work()
    monkeypatch.setattr("tdbg_lab.store.findings.RUNNER_SILENCE_NS", 0)
    info = read_json(made.path / "run.json")
    write_json(made.path / "run.json", {**info, "host": "elsewhere"})
    (state,) = open_run(made.path).rule_states()
    assert state.status is RuleStatus.IN_PROGRESS
