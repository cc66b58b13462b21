"""The processes beside a training: who is killed comes again."""

from __future__ import annotations

import time

import psutil
import pytest
import torch
from capture_training import Net, train

from tdbg_lab.capture import keeping
from tdbg_lab.run import open_run


def processes(module: str, path: str) -> set[int]:
    """Numbers of our children that run a module on a run."""
    found = set()
    for one in psutil.Process().children():
        try:
            words = one.cmdline()
        except psutil.Error:  # it was killed, and nobody has waited for it yet
            continue
        if module in words and path in words:
            found.add(one.pid)
    return found


def eventually(condition):
    """The first true value."""
    deadline = time.monotonic() + 90
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
    return value


@pytest.mark.parametrize("module", ["tdbg_lab.profiler", "tdbg_lab.rules"])
def test_process_that_is_killed_is_started_again_and_goes_on(attach, monkeypatch, caplog, module):
    monkeypatch.setattr(keeping, "START_AGAIN_S", (0.0,) * 4)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, profiler=True, rules="loss_not_decreasing")
    path = str(handle.run_path)
    train(model, optimizer, 2)
    (first,) = eventually(lambda: processes(module, path))
    run = handle.run

    def at_work():
        run.refresh()
        return run.last_sample_ns if module == "tdbg_lab.profiler" else run.rule_states()

    eventually(at_work)
    psutil.Process(first).kill()
    (second,) = eventually(lambda: processes(module, path) - {first})
    since_ns = time.time_ns()
    train(model, optimizer, 2)
    if module == "tdbg_lab.profiler":
        eventually(lambda: at_work() > since_ns)
    else:
        eventually(lambda: [one.step_checked for one in at_work()] == [3])
    handle.detach()
    eventually(lambda: not psutil.pid_exists(second))
    assert sum("was killed; it is started again" in one.getMessage() for one in caplog.records) == 1
    assert open_run(path).problems == []


@pytest.mark.parametrize(("code", "starts"), [(0, 1), (2, 1), (1, 3)])
def test_process_that_fails_is_started_again_and_one_that_has_no_more_to_do_is_not(
    monkeypatch, caplog, code, starts
):
    """As a sampler that began while the disk was full, or rules that had no memory."""
    monkeypatch.setattr(keeping, "START_AGAIN_S", (0.0,) * 4)
    codes, begun = [code, code, 0], []

    class Process:
        def __init__(self):
            self.returncode = codes[len(begun)]
            begun.append(self)

        def wait(self):
            return self.returncode

    monkeypatch.setattr(keeping, "start_thread", lambda keep, _name: keep())
    keeping.keep(Process, "sampler", goes_on=lambda: True, wait=Process.wait)
    assert len(begun) == starts
    told = [one.getMessage() for one in caplog.records]
    assert told == ["tdbg-lab: the sampler failed; it is started again."] * (starts - 1)
