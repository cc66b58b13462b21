"""Models that return parts of their loss by name, as torchvision's detectors do."""

import numpy as np
import torch
from torch import nn

import tdbg_lab

STEPS = 5


class Detector(nn.Module):
    def __init__(self, parts=2):
        super().__init__()
        self.body, self.parts = nn.Linear(4, 2), parts

    def forward(self, x, targets=None):
        out = self.body(x)
        if targets is None:
            return {"boxes": out, "loss_of_nothing": out.mean()}
        losses = {f"loss_{i}": (out - targets).square().mean() * (i + 1) for i in range(self.parts)}
        return {**losses, "threshold": out.mean(), "loss_each": (out - targets).square(), 7: out.mean()}


def train(tmp_path, parts=2):
    torch.manual_seed(0)
    net = Detector(parts)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x, y = torch.randn(16, 4), torch.randn(16, 2)
    sums = []
    with tdbg_lab.attach(
        net, optimizer=optimizer, store=tmp_path / "run", profiler=False, strict=True
    ) as handle:
        for _ in range(STEPS):
            out = net(x, y)
            loss = out["loss_0"] + out["loss_1"]
            sums.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            net(x)
        assert not handle.problems
    return tdbg_lab.open_run(tmp_path / "run"), np.array(sums)


def test_parts_of_a_loss_are_scalars_beside_their_sum(tmp_path):
    run, sums = train(tmp_path)
    assert run.tensor_names(kind="loss") == ["loss/objective"]
    np.testing.assert_allclose(run.scalars("loss/objective").values, sums, rtol=1e-6)
    assert sorted(run.tensor_names(kind="scalar")) == ["loss_0", "loss_1"], "neither maps nor thresholds"
    for part in range(2):
        found = run.scalars(f"loss_{part}")
        assert found.steps.tolist() == list(range(STEPS))
        np.testing.assert_allclose(found.values, sums * (part + 1) / 3, rtol=1e-6)


def test_many_values_by_name_are_no_parts_of_a_loss(tmp_path):
    run, _ = train(tmp_path, parts=100)
    assert not run.tensor_names(kind="scalar")
