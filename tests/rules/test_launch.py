"""Starting the runner beside a run, and what is known of it when it is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tdbg_lab.errors import NotFoundError
from tdbg_lab.records import RuleStatus
from tdbg_lab.rules import DeadRelu, launch
from tdbg_lab.rules.runner import Runner
from tdbg_lab.run import open_run
from tdbg_lab.store.layout import read_json, write_json
from tests.threads import no_more_threads

from .made import Made
from .running import Above, latest, state_of, wait_for

if TYPE_CHECKING:
    from pathlib import Path


def test_launch_starts_a_runner_that_ends_with_the_run(made: Made) -> None:
    process = launch(made.path, ["exploding_tensor", DeadRelu(patience=3)])
    assert process is not None
    wait_for(lambda: state_of(made.path, "dead_relu"))
    assert state_of(made.path, "dead_relu").parameters["patience"] == 3
    assert os.getsid(process.pid) != os.getsid(0)
    made.end()
    assert process.wait(20) == 0


def test_rules_are_launched_where_no_more_threads_may_be_started(made: Made) -> None:
    made.end()
    with no_more_threads():
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
