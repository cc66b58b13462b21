"""The runner in a process of its own: it lives as long as the run, and hears when it is asked to stop."""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.records import RuleStatus
from tdbg_lab.store import read_rule_status

from .running import Above, latest, send, state_of, wait_for

if TYPE_CHECKING:
    from .made import Made


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
