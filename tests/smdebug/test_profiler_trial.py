"""Trials of profiler data, and rules that look at them."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from tdbg_lab.smdebug.exceptions import (
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    SMDebugRuntimeError,
    SMDebugTypeError,
)
from tdbg_lab.smdebug.rules import Rule, invoke_rule
from tdbg_lab.smdebug.trials import ProfilerTrial, create_trial
from tdbg_lab.store import RankWriter, SystemWriter, create_run
from tests.smdebug.predecessor import answers_of_both, needs_predecessor
from tests.smdebug.profiler_files import RECORDED, write_readings

START = 1_700_000_000 * 10**6
ANSWERS = """
import importlib, json, sys, time
time.sleep = lambda seconds: None
create_trial = importlib.import_module(sys.argv[1] + ".trials").create_trial
NoMore = importlib.import_module(sys.argv[1] + ".exceptions").NoMoreProfilerData
trial = create_trial(sys.argv[2], name="job", profiler=True, output_dir=sys.argv[3])
events = trial.get_framework_metrics(0, 2e15)
try:
    ended = trial.wait_for_data(2e15, 2e15 - 1)
except NoMore as error:
    ended = error.timestamp
print("answers", json.dumps([
    type(trial).__name__, trial.name, trial.path, trial.output_dir, trial.temp_dir, trial.job_finished(),
    [
        [e.type, e.name or e.type, e.dimension, e.value, e.timestamp]
        for e in trial.get_system_metrics(0, 2e15)
    ],
    sorted([e.event_name, e.start_time, e.duration] for e in events),
    trial.wait_for_data(1795260800e6, 0), ended,
]))
"""


@pytest.fixture
def run(tmp_path):
    """Ten readings of a CPU, a second apart, from 0 to 90 %; the job goes on."""
    folder = create_run(tmp_path / "run")
    writer = RankWriter(folder.path)
    writer.append_spans(["forward"], ["forward"], [START * 1000], [10_000_000], [0])
    writer.close()
    write_cpu(folder.path, range(10))
    return folder


def write_cpu(path, seconds):
    system = SystemWriter(path)
    for second in seconds:
        system.append((START + second * 10**6) * 1000, ["cpu"], ["cpu"], [10.0 * second])
    system.close()


class BusyCpu(Rule):
    """Looks at windows of 2 s, as rules on profiler data do."""

    def __init__(self, base_trial, threshold=55):
        super().__init__(base_trial)
        self.threshold = threshold
        self.seen = []

    def invoke_at_step(self, step):
        raise NotImplementedError

    def invoke(self, step):
        first = self.base_trial.first_timestamp + step * 2_000_000
        self.base_trial.wait_for_data(first + 2_000_000, first)
        values = [one.value for one in self.base_trial.get_system_metrics(first, first + 1_999_999)]
        self.seen.append(values)
        if max(values) > self.threshold:
            raise RuleEvaluationConditionMet(self.rule_name, step)


def test_rule_goes_through_the_windows_and_ends_with_the_data(run, tmp_path):
    run.set_status("finished")
    trial = create_trial(run.path, profiler=True, output_dir=tmp_path / "out")
    assert isinstance(trial, ProfilerTrial)
    assert (trial.name, trial.path, trial.job_finished()) == ("run", str(run.path), True)
    assert trial.first_timestamp == START
    assert Path(trial.temp_dir).is_dir()
    assert Path(trial.temp_dir).parent == Path(trial.output_dir) == tmp_path / "out"
    rule = BusyCpu(trial)
    invoke_rule(rule)  # ends by itself
    assert rule.seen == [[0.0, 10.0], [20.0, 30.0], [40.0, 50.0], [60.0, 70.0], [80.0, 90.0]]
    with pytest.raises(RuleEvaluationConditionMet) as found:
        invoke_rule(BusyCpu(trial), raise_eval_cond=True)
    assert found.value.step == 3
    assert [one.event_name for one in trial.get_framework_metrics(START, START + 1)] == ["forward"]


def test_trial_waits_while_the_job_goes_on(run):
    trial = create_trial(run.path, profiler=True)
    assert not trial.job_finished()
    assert trial.get_latest_timestamp() == START  # phases are behind
    waiting = threading.Thread(target=trial.wait_for_data, args=(START + 12_000_000, START), daemon=True)
    waiting.start()
    waiting.join(0.7)
    assert waiting.is_alive()
    write_cpu(run.path, range(10, 13))
    run.set_status("finished")
    waiting.join(20)
    assert not waiting.is_alive()
    assert len(trial.get_system_metrics(START, START + 20_000_000)) == 13
    assert trial.get_latest_timestamp() == START + 12_000_000
    with pytest.raises(NoMoreProfilerData):
        trial.wait_for_data(START + 60_000_000, START + 50_000_000)


def test_trial_without_data_and_rule_without_steps_are_told(run, tmp_path):
    empty = create_run(tmp_path / "empty")
    empty.set_status("finished")
    with pytest.raises(SMDebugRuntimeError, match="left no profiler data"):
        create_trial(empty.path, profiler=True)

    class OnlySteps(Rule):
        def invoke_at_step(self, step):
            return True

    with pytest.raises(SMDebugTypeError, match="OnlySteps looks at profiler data"):
        invoke_rule(OnlySteps(create_trial(run.path, profiler=True)))


@needs_predecessor
def test_answers_are_those_of_the_predecessor(tmp_path):
    folder = tmp_path / "profiler-output"
    write_readings(folder)
    shutil.copytree(RECORDED / "pevents", folder / "framework" / "pevents")
    (folder / "framework" / "training_job_end.ts").touch()
    theirs, ours = answers_of_both(ANSWERS, "smdebug", str(folder), str(tmp_path / "out"))
    assert theirs == ours
