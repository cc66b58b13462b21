"""The server looks after open runs that have no rules."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tdbg_lab.records import RunStatus
from tdbg_lab.rules import resolve_rules
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


def listen(made: Made, **more) -> dict:
    """What was started for a run after one look."""
    pool = ThreadPoolExecutor(1)
    runners = RuleRunners(pool, **more)
    entry = SimpleNamespace(id="a", root=SimpleNamespace(remote=None))
    tail = SimpleNamespace(run=open_run(made.path), removed=False, entry=entry)
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


def test_run_with_rules_is_left_alone(made):
    runner = Runner(made.path, resolve_rules("exploding_tensor"))
    runner.work(last=True)
    assert listen(made) == {}
    runner.close()


def test_ended_run_is_left_alone(made):
    made.end()
    assert open_run(made.path).status is RunStatus.FINISHED
    assert listen(made) == {}
