"""Compiled models: saved steps run eagerly and are seen, the others stay compiled."""

from __future__ import annotations

import pytest
import torch
from capture_training import batch
from torch import nn

pytestmark = pytest.mark.skipif(not hasattr(torch.compiler, "set_stance"), reason="needs set_stance")


class Counting:
    """A backend that counts compilations and runs of compiled graphs."""

    def __init__(self):
        self.compiled = self.runs = 0

    def __call__(self, graph, _inputs):
        self.compiled += 1

        def run(*args):
            self.runs += 1
            return graph.forward(*args)

        return run


class Small(nn.Module):  # not a Sequential: PyTorch does not compile those in place
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.act(self.first(x.flatten(1))))


def train(call, optimizer, steps):
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(call(x), y).backward()
        optimizer.step()


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("given", ["wrapper", "inner", "in place"])
def test_saved_steps_of_a_compiled_model_are_captured_and_the_others_stay_compiled(attach, given, fullgraph):
    backend = Counting()
    model = Small()
    if given == "in place":
        model.compile(backend=backend, fullgraph=fullgraph)
        call = model
    else:
        call = torch.compile(model, backend=backend, fullgraph=fullgraph)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = attach(call if given == "wrapper" else model, optimizer=optimizer, save_every=3)
    train(call, optimizer, 9)
    handle.detach()
    run = handle.run
    assert run.steps(tensor="gradient/first.weight").tolist() == [0, 3, 6]
    expected = [3, 6] if given == "inner" else [0, 3, 6]  # the first step shows that it is compiled
    assert run.steps(tensor="activation/first").tolist() == expected
    assert backend.compiled == 1, "toggling compiles nothing again"
    assert backend.runs == 9 - len(expected)
    train(call, optimizer, 2)
    assert backend.compiled <= 2, "once more at most, because hooks have gone"
    assert backend.runs == 11 - len(expected)
    assert not handle.problems
