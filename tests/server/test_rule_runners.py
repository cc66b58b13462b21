"""The server looks after open runs that have no rules."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import psutil
import pytest

from tdbg_lab.records import RunStatus
from tdbg_lab.rules import launch, resolve_rules
from tdbg_lab.rules.runner import Runner
from tdbg_lab.run import open_run
from tdbg_lab.server.rule_runners import RuleRunners
from tdbg_lab.store import read_rule_states
from tests.rules.made import Made


@pytest.fixture
def made(tmp_path):
    made = Made(tmp_path / "run")
    made.step(0, {"loss/x": float("nan")})
    return made


def tail_of(made: Made, identity: str = "a") -> SimpleNamespace:
    entry = SimpleNamespace(id=identity, root=SimpleNamespace(remote=None))
    return SimpleNamespace(run=open_run(made.path), removed=False, entry=entry)


def listen(made: Made, *, looks: int = 2) -> dict:
    """What was started for a run after some looks at it."""
    pool, time_s = ThreadPoolExecutor(1), 0.0
    runners = RuleRunners(pool, clock=lambda: time_s)
    tail = tail_of(made)
    for _ in range(looks):
        time_s += 7.0
        runners.listen(tail)
        runners.listen(tail)
    pool.shutdown(wait=True)
    return runners._processes


def test_running_run_without_rules_gets_the_default_ones(made):
    (process,) = listen(made).values()
    deadline = time.monotonic() + 60
    while not read_rule_states(made.path) and time.monotonic() < deadline:
        time.sleep(0.02)
    made.end()
    assert process.wait(60) == 0
    assert {state.rule for state in read_rule_states(made.path)} == {
        rule.name for rule in resolve_rules("default")
    }


def test_process_of_a_run_that_has_ended_is_let_go(tmp_path, made):
    """A server that lives for weeks would gather what the system keeps of them."""
    pool, time_s = ThreadPoolExecutor(1), 0.0
    runners = RuleRunners(pool, clock=lambda: time_s)
    runners.listen(tail_of(made))
    time_s = 7.0
    runners.listen(tail_of(made))
    pool.submit(lambda: None).result(60)
    (process,) = runners._processes.values()
    made.end()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert psutil.pid_exists(process.pid)
    other = Made(tmp_path / "other")
    other.end()
    time_s = 3600.0
    runners.listen(tail_of(other, "b"))
    pool.shutdown(wait=True)
    assert not psutil.pid_exists(process.pid)
    assert runners._processes == {}
    assert list(runners._looked_s) == ["b"]


def test_run_that_has_just_begun_may_start_rules_of_its_own(made):
    assert listen(made, looks=1) == {}


def test_run_whose_runner_is_about_to_begin_is_left_alone(made):
    """Of a training, or of another server on the same folder."""
    process = launch(made.path)
    assert listen(made) == {}
    made.end()
    assert process.wait(60) == 0


def test_run_with_rules_is_left_alone(made):
    runner = Runner(made.path, resolve_rules("exploding_tensor"))
    runner.work(last=True)
    assert listen(made) == {}
    runner.close()


def test_ended_run_is_left_alone(made):
    made.end()
    assert open_run(made.path).status is RunStatus.FINISHED
    assert listen(made) == {}


def test_what_the_server_starts_leaves_when_the_training_has_its_rules_again(made):
    """A training starts its own again where they were killed, after a pause."""
    (process,) = listen(made).values()
    own = launch(made.path)
    assert process.wait(60) == 0
    assert own.poll() is None
    made.end()
    assert own.wait(60) == 0
