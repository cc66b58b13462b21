"""Quantization-aware training: what rounds weights and outputs is put into the layers, which stay layers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch says that it moves to a package of its own
quantization = pytest.importorskip("torch.ao.quantization", reason="this PyTorch has none")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.act, self.last = nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Linear(4 * 36, 3)

    def forward(self, x):
        return self.dequant(self.last(self.act(self.conv(self.quant(x))).flatten(1)))


def prepared():
    torch.manual_seed(0)
    model = Net().train()
    model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    return quantization.prepare_qat(model)


def train(model):
    """Four steps; what the last layer has returned in them."""
    outputs = []
    model.last.register_forward_hook(lambda *passed: outputs.append(passed[2].detach().clone()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for seed in range(4):
        x = torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(seed))
        nn.functional.cross_entropy(model(x), torch.arange(6) % 3).backward()
        optimizer.step()
        optimizer.zero_grad()
    return outputs


def test_outputs_are_those_of_layers(attach):
    model = prepared()
    with attach(model, save_every=1) as handle:
        outputs = train(model)
    names = {one.removeprefix("activation/") for one in handle.run.tensor_names(kind="activation")}
    assert names == {"quant", "conv", "act", "last", "dequant"}
    norms = handle.run.stats("activation/last", "l2")["l2"]
    assert norms.to_numpy() == pytest.approx([float(one.norm()) for one in outputs], rel=1e-5)
    assert all(map(torch.equal, outputs, train(prepared())))


def test_layers_of_brevitas_are_layers_too(attach):
    layers = pytest.importorskip("brevitas.nn")
    torch.manual_seed(0)
    model = nn.Sequential(
        layers.QuantIdentity(bit_width=4),
        layers.QuantConv2d(1, 4, 3, bias=True, weight_bit_width=4),
        layers.QuantReLU(bit_width=4),
        nn.Flatten(),
        layers.QuantLinear(4 * 36, 3, bias=True, weight_bit_width=4),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model, optimizer=optimizer) as handle:
        x, y = torch.randn(6, 1, 8, 8), torch.arange(6) % 3
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    names = {one.removeprefix("activation/") for one in handle.run.tensor_names(kind="activation")}
    assert {one for one in names if "quant" not in one} == {"0", "1", "2", "3", "4"}
    assert not [one for one in names if one.startswith(("1.", "4."))]  # no rounded weights
