"""CUDA graphs: a capture is not disturbed, what is not seen is said once; without a device by a stand-in."""

from __future__ import annotations

import math
from contextlib import contextmanager

import pytest
import torch
from capture_training import batch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_

from tdbg_lab.capture.pytorch import graphs, hook

CAPTURED = "a CUDA graph is captured, and what runs inside it is not seen when it is replayed"
REPLAYED = "a CUDA graph is replayed, and what runs inside it is not seen, nor counted as a step"


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(F.relu(self.act(self.first(x.flatten(1)))))


class Graph:
    """What stands for `torch.cuda.CUDAGraph`: it counts its replays."""

    def __init__(self):
        self.replays = 0

    def replay(self):
        self.replays += 1


class Device:
    """What PyTorch tells of a device on which a graph can be captured; no value may be read meanwhile."""

    def __init__(self, monkeypatch):
        self.capturing = False
        monkeypatch.setattr(torch.cuda, "_initialized", True)
        monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
        monkeypatch.setattr(graphs, "_stream_is_capturing", lambda: self.capturing)
        for module in (hook, graphs):
            monkeypatch.setattr(module, "CAN_CAPTURE", True)
        for reading in ("item", "cpu", "numpy", "tolist", "__float__", "__bool__"):
            monkeypatch.setattr(torch.Tensor, reading, self._watched(getattr(torch.Tensor, reading)))

    def _watched(self, original):
        def read(tensor, *args, **kwargs):
            assert not self.capturing, "CUDA error: operation not permitted when stream is capturing"
            return original(tensor, *args, **kwargs)

        return read

    @contextmanager
    def graph(self):
        self.capturing = True
        try:
            yield
        finally:
            self.capturing = False


@pytest.fixture
def device(monkeypatch):
    return Device(monkeypatch)


def step(model, optimizer, criterion, seed):
    x, y = batch(seed)
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()


def messages(handle):
    return [one.message for one in handle.problems]


def test_step_that_is_captured_is_left_alone_and_said_once(attach, device):
    model, criterion = Small(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, loss=criterion)
    for seed in range(2):
        step(model, optimizer, criterion, seed)
    assert messages(handle) == []
    with device.graph():
        for seed in range(3):
            step(model, optimizer, criterion, seed)
    assert messages(handle) == [CAPTURED]
    assert handle.step == 2
    step(model, optimizer, criterion, 5)
    handle.detach()
    assert handle.run.steps().tolist() == [0, 1, 2]
    for name in ("activation/act", "activation/relu_0", "gradient/first.weight", "loss/CrossEntropyLoss"):
        assert handle.run.steps(tensor=name).tolist() == [0, 1, 2], name
    assert f"not seen: {CAPTURED}" in handle.status()


def test_part_of_a_forward_that_is_captured_is_left_alone(attach, device):
    class Around(Small):
        def forward(self, x):
            x = self.first(x.flatten(1))
            with device.graph():
                x = F.relu(self.act(x))
            return self.last(x)

    model = Around()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model, optimizer=optimizer) as handle:
        step(model, optimizer, nn.CrossEntropyLoss(), 0)
    assert messages(handle) == [CAPTURED]
    names = handle.run.tensor_names(kind="activation")
    assert {"activation/first", "activation/last"} <= set(names)
    assert not {"activation/act", "activation/relu_0"} & set(names)


def test_replay_of_a_graph_that_was_captured_before_is_said_once(attach, device):
    original = Graph.replay
    handle = attach(Small())
    graph = Graph()
    for _ in range(3):
        graph.replay()
    assert graph.replays == 3
    assert messages(handle) == [REPLAYED]
    handle.detach()
    assert Graph.replay is original


def test_replays_by_the_compiler_are_its_own_affair(attach, device):
    handle = attach(Small())
    graph = Graph()
    exec("graph.replay()", {"graph": graph, "__name__": "torch._inductor.cudagraph_trees"})
    assert graph.replays == 1
    assert messages(handle) == []


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_real_graph_of_a_whole_step_is_captured_and_replayed_undisturbed(attach):
    model, criterion = Small().cuda(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = (one.cuda() for one in batch(0))

    def train():
        optimizer.zero_grad(set_to_none=False)
        loss = criterion(model(x), y)
        loss.backward()
        clip_grad_norm_(model.parameters(), 0.1, foreach=True)
        optimizer.step()
        return loss

    handle = attach(model, optimizer=optimizer, loss=criterion)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = train()
    before = model.first.weight.clone()
    graph.replay()
    assert math.isfinite(loss.item())
    assert not torch.equal(model.first.weight, before)
    assert messages(handle) == [CAPTURED]
    assert handle.step == 3
    handle.detach()
    late = attach(model, optimizer=optimizer)
    graph.replay()
    assert messages(late) == [REPLAYED]
