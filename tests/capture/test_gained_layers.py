"""Layers that come to a model after capture began, and layers that take the place of others."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        return x + F.relu(self.inner(x))


def make():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def add_block(model, optimizer):
    model.insert(2, Block())
    optimizer.add_param_group({"params": model[2].parameters()})


def change_head(model, optimizer):
    model[2] = nn.Linear(8, 3)
    optimizer.param_groups[0]["params"] = list(model.parameters())


def trained(change, handle_of=None, steps=24, at=8):
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = handle_of(model, optimizer=optimizer) if handle_of else None
    for step in range(steps):
        if step == at:
            change(model, optimizer)
        x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    if handle is not None:
        handle.detach()
    return model, handle


@pytest.mark.parametrize(("save_every", "held", "called"), [(1, 8, 9), (5, 10, 10)])
def test_added_layer_is_seen(attach, save_every, held, called):
    _, handle = trained(add_block, partial(attach, save_every=save_every))
    first = {name: handle.run.steps(tensor=name)[0] for name in handle.run.tensor_names()}
    for name in ("2.inner.weight", "gradient/2.inner.weight", "optimizer/update_ratio/2.inner.weight"):
        assert first[name] == held
    for name in ("activation/2.inner", "activation/2.relu_0", "activation/3"):
        assert first[name] == called
    assert handle.problems == []


def test_layer_in_the_place_of_another_goes_on_under_its_name(attach):
    _, handle = trained(change_head, attach)
    run = handle.run
    assert run.steps(tensor="2.weight").tolist() == list(range(24))
    moved = run.stats("2.weight", "mean")["mean"].diff().abs()
    assert moved.idxmax() == 8
    assert set(range(9, 24)) <= set(run.steps(tensor="activation/2").tolist())


def test_layer_without_parameters_in_the_place_of_another_is_seen(attach):
    def change_activation(model, _optimizer):
        model[1] = nn.GELU()

    _, handle = trained(change_activation, attach)
    assert set(range(9, 24)) <= set(handle.run.steps(tensor="activation/1").tolist())


@pytest.mark.parametrize("change", [add_block, change_head])
def test_training_is_the_same_and_nothing_is_left_behind(attach, change):
    bare, _ = trained(change)
    seen, _ = trained(change, attach)
    for one, other in zip(bare.parameters(), seen.parameters(), strict=True):
        assert torch.equal(one, other)
    for module in seen.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
