"""Weights that are stored packed are seen as what they stand for."""

from __future__ import annotations

import pytest
import torch
from torch import nn


class Halved(torch.Tensor):
    """Holds half of what it stands for, as quantised tensors of libraries hold integers."""

    @staticmethod
    def __new__(cls, half):
        return torch.Tensor._make_wrapper_subclass(cls, half.shape, dtype=half.dtype)

    def __init__(self, half):
        self.half = half

    def dequantize(self):
        return 2 * self.half

    @classmethod
    def __torch_dispatch__(cls, func, _types, args=(), kwargs=None):
        if func in {torch.ops.aten.detach.default, torch.ops.aten.view.default}:
            return cls(args[0].half)
        if func is torch.ops.aten.cat.default:
            raise NotImplementedError("nobody lays these side by side")
        return func(*(one.dequantize() if isinstance(one, cls) else one for one in args), **kwargs or {})


class Shrink(torch.optim.Optimizer):
    """Takes a tenth away, in place."""

    def step(self):
        for value in self.param_groups[0]["params"]:
            (value.half if isinstance(value, Halved) else value.data).mul_(0.9)


def test_update_ratio_of_a_quantised_parameter_is_that_of_what_it_stands_for(attach):
    model = nn.Linear(4, 3)
    model.weight = nn.Parameter(Halved(torch.ones(3, 4)))
    optimizer = Shrink(model.parameters(), {})
    handle = attach(model, optimizer=optimizer)
    for _ in range(2):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    handle.detach()
    assert not handle.problems
    for name in ("weight", "bias"):
        ratios = handle.run.scalars(f"optimizer/update_ratio/{name}").values
        assert ratios == pytest.approx([0.1, 0.1]), name


def test_weights_in_four_bits_are_seen_as_what_they_stand_for(attach):
    bitsandbytes = pytest.importorskip("bitsandbytes")
    torch.manual_seed(0)
    packed = bitsandbytes.nn.Linear4bit(64, 32, compute_dtype=torch.float32, quant_type="nf4")
    before = packed.weight.detach().clone()
    packed.weight.requires_grad_(False)
    model = nn.Sequential(packed.to("cpu"), nn.ReLU(), nn.Linear(32, 3))
    assert model[0].weight.dtype is torch.uint8
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
    handle = attach(model, optimizer=optimizer, collections={"weights": {"values": "both"}})
    model(torch.randn(4, 64)).sum().backward()
    optimizer.step()
    handle.detach()
    assert not handle.problems
    weight = handle.run.tensor("0.weight")
    assert (weight.key.dtype, weight.key.shape) == ("float32", (32, 64))
    assert weight.stats(0).std[0] == pytest.approx(float(before.std()), rel=0.05)
    assert abs(weight.value(0) - before.numpy()).max() < 0.03
