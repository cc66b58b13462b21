"""Compiled models, and steps that are compiled as a whole, are found."""

from __future__ import annotations

import pytest
import torch
from small_trainings import batch, everywhere, net, steps
from torch import nn


@pytest.mark.parametrize("in_place", [False, True])
def test_compiled_model_is_captured(watched, in_place):
    def program():
        model = net()
        if in_place:
            model.compile(backend="eager")
        else:
            model = torch.compile(model, backend="eager")
        steps(model, torch.optim.SGD(model.parameters(), lr=0.1), nn.CrossEntropyLoss())

    (run,) = watched(program)
    everywhere(run, "gradient/0.weight", "0.bias")
    first = 1 if in_place else 0  # compiled in place, the first step is seen from its end
    assert run.tensor("activation/0").steps().tolist() == list(range(first, 4))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # of the compiler
def test_step_that_is_compiled_as_a_whole_is_captured_from_its_second_time_on(watched):
    def program(told):
        torch.manual_seed(0)
        model, criterion = net(), nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        @torch.compile(backend="eager")
        def step(x, y):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        told += [float(step(*batch())) for _ in range(6)]

    bare, seen = [], []
    program(bare)
    torch.compiler.reset()
    (run,) = watched(program, seen)
    assert seen == bare
    assert run.last_step == 5
    everywhere(run, "gradient/0.weight", "0.bias", n=6)
    assert run.tensor("activation/0").steps().tolist() == list(range(1, 6))
