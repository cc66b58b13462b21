"""What a step that is not saved costs, counted: calls of ours, which no other load of the machine changes."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from capture_training import Net, batch, train
from torch import nn

from tdbg_lab import capture
from tdbg_lab.capture import control, cost, guard, waiting
from tdbg_lab.capture.pytorch import hook
from tdbg_lab.capture.pytorch.updates import UpdateProbe

_OURS = str(Path(capture.__file__).parent)
_NOW_AND_THEN = ("Recorder.flush_waiting", "Recorder._intern")
"""What depends on the clock: numbers are written together."""


def calls_a_step(net, optimizer, criterion, steps=16):
    """Python functions of ours that are called in a step, by name."""
    found = Counter()

    def note(frame, event, _argument):
        name = frame.f_code.co_qualname
        if event == "call" and frame.f_code.co_filename.startswith(_OURS) and name not in _NOW_AND_THEN:
            found[name] += 1

    sys.setprofile(note)
    try:
        train(net, optimizer, steps, loss=criterion)
    finally:
        sys.setprofile(None)
    return Counter({name: count / steps for name, count in found.items()})


@pytest.fixture(autouse=True)
def _no_requests(monkeypatch):
    """Nobody looks for requests, and numbers wait: how often either happens depends on the clock."""
    monkeypatch.setattr(control, "_INTERVAL_S", 3600)
    monkeypatch.setattr(waiting, "_WAIT_NS", 3600 * 10**9)


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net()


@pytest.mark.parametrize(("checks", "most"), [(True, 72), (False, 50)])
def test_steps_that_are_not_saved_call_little_of_ours(attach, net, checks, most):
    optimizer, criterion = torch.optim.SGD(net.parameters(), lr=0.01), nn.CrossEntropyLoss()
    handle = attach(
        net, optimizer=optimizer, loss=criterion, save_every=10**6, profiler=False, config={"checks": checks}
    )
    train(net, optimizer, 20, loss=criterion)  # the first steps are looked at more closely
    found = calls_a_step(net, optimizer, criterion)
    assert found["RootProbe.begin"] == 1
    assert sum(found.values()) <= most, found.most_common(30)
    handle.detach()
    assert sum(calls_a_step(net, optimizer, criterion, 2).values()) == 0


def test_the_cost_is_known_where_each_step_follows_an_evaluation(attach, net, monkeypatch):
    """Full batches: what a step takes is counted from its first forward on."""
    now_ns = [10**9]
    monkeypatch.setattr(cost, "perf_counter_ns", lambda: now_ns[0])
    optimizer, criterion = torch.optim.SGD(net.parameters(), lr=0.01), nn.CrossEntropyLoss()
    handle = attach(net, optimizer=optimizer, profiler=False)
    for step in range(4):
        net.train()
        x, y = batch(step)
        loss = criterion(net(x), y)
        now_ns[0] += 3_000_000
        loss.backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            net(x)
        now_ns[0] += 200_000_000
    handle.detach()
    assert handle.run.scalars("tdbg/step_ms").values.tolist() == [3.0, 3.0, 3.0]


def test_capture_counts_in_the_step_that_it_is_part_of(attach, net, monkeypatch):
    """Also what is going on as the step ends: it counted in the next one, which is seldom as slow."""
    now_ns = [10**9]
    for module in (cost, guard, hook):
        monkeypatch.setattr(module, "perf_counter_ns", lambda: now_ns[0])
    own = UpdateProbe.after

    def slow_once(probe, *args):
        now_ns[0] += 40_000_000 if handle._engine.step == 2 else 0
        return own(probe, *args)

    monkeypatch.setattr(UpdateProbe, "after", slow_once)
    optimizer, criterion = torch.optim.SGD(net.parameters(), lr=0.01), nn.CrossEntropyLoss()
    handle = attach(net, optimizer=optimizer, save_every=1, profiler=False)
    for step in range(5):
        optimizer.zero_grad()
        x, y = batch(step)
        loss = criterion(net(x), y)
        now_ns[0] += 3_000_000
        loss.backward()
        optimizer.step()
    handle.detach()
    assert handle.run.scalars("tdbg/capture_ms").values.tolist() == [0.0, 40.0, 0.0, 0.0]
    assert handle.run.scalars("tdbg/step_ms").values.tolist() == [3.0, 43.0, 3.0, 3.0]
