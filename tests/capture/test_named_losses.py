"""Losses that a model returns: by name, as torchvision's detectors do, or parts of that of the step."""

import numpy as np
import pytest
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


class Counting(nn.Module):
    """Divides its loss by the number of labels of the whole step, as transformers' models do."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x, y, num_items_in_batch=None):
        errors = (self.body(x)[:, 0] - y).square()
        return {"loss": errors.mean() if num_items_in_batch is None else errors.sum() / num_items_in_batch}


@pytest.mark.parametrize("ranks", [1, 4])
def test_losses_of_a_step_that_add_up_are_one(tmp_path, ranks):
    """`ranks`: the labels may be those of all, and the loss is multiplied by their number then."""
    torch.manual_seed(0)
    net = Counting()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x, y = torch.randn(48, 4), torch.randn(48)
    sums = []
    with tdbg_lab.attach(net, optimizer=optimizer, store=tmp_path / "run", profiler=False, strict=True):
        for _ in range(STEPS):
            losses = []
            for part, target in zip(x.split(20), y.split(20), strict=True):
                loss = net(part, target, num_items_in_batch=torch.tensor(48 * ranks))["loss"] * ranks
                loss.backward()
                losses.append(loss.item())
            sums.append(sum(losses))
            optimizer.step()
            optimizer.zero_grad()
        net.eval()
        with torch.no_grad():
            held = net(x, y, num_items_in_batch=torch.tensor(48 * ranks))["loss"].item() * ranks
    run = tdbg_lab.open_run(tmp_path / "run")
    assert run.tensor_names(kind="loss") == ["loss/Counting"]
    np.testing.assert_allclose(run.scalars("loss/Counting").values, sums, rtol=1e-6)
    np.testing.assert_allclose(run.scalars("loss/Counting", mode="eval").values, [held], rtol=1e-6)
