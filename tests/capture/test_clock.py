"""A machine's clock that is set while a training goes on."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from capture_training import Net, train
from torch import nn


@pytest.mark.parametrize("set_s", [-3600, 3600])
@pytest.mark.parametrize("save_every", [1, 10**6])
def test_records_go_on_evenly_when_the_clock_is_set(attach, monkeypatch, set_s, save_every):
    torch.manual_seed(0)
    net, criterion, real_ns = Net(), nn.CrossEntropyLoss(), time.time_ns
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with attach(net, optimizer=optimizer, loss=criterion, save_every=save_every, profiler=True) as handle:
        train(net, optimizer, 10, loss=criterion)
        handle._engine.phases.flush()
        monkeypatch.setattr(time, "time_ns", lambda: real_ns() + set_s * 10**9)
        train(net, optimizer, 10, loss=criterion)
        handle._engine.phases.flush()
        train(net, optimizer, 10, loss=criterion)
    spans = handle.run.spans()
    starts = spans[spans.phase == "forward"].sort_values("step").start_ns.to_numpy()
    for times in (handle.run.step_times()[1], starts):
        assert len(times) == 30
        assert 0 <= np.diff(times).min() <= np.diff(times).max() < 60 * 10**9
