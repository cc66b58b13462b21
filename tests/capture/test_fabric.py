"""Lightning Fabric puts an optimizer around the optimizer, with the very hooks of the one within."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from tdbg_lab.capture.auto import AutoWatch
from tdbg_lab.run import open_run

fabrics = pytest.importorskip("lightning.fabric")


def trained(attach=lambda model, optimizer: None, *, when="after"):
    """Weights after six steps; `attach` is called before or after the set-up of Fabric."""
    torch.manual_seed(0)
    fabric = fabrics.Fabric(accelerator="cpu", devices=1)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if when == "before":
        attach(model, optimizer)
    model, optimizer = fabric.setup(model, optimizer)
    if when == "after":
        attach(model, optimizer)
    for _ in range(6):
        optimizer.zero_grad()
        fabric.backward(functional.cross_entropy(model(torch.randn(6, 4)), torch.randint(0, 3, (6,))))
        optimizer.step()
    return [one.detach().clone() for one in model.parameters()]


def judge(run, weights):
    assert run.last_step == 5
    assert run.tensor("gradient/0.weight").steps().tolist() == list(range(6))
    assert len(run.scalars("loss/objective").steps) == 6
    for one, other in zip(weights, trained(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("when", ["before", "after"])
def test_steps_are_those_of_the_optimizer_within(attach, when, given):
    handles = []

    def hang(model, optimizer):
        handles.append(attach(model, optimizer=optimizer if given else None))

    weights = trained(hang, when=when)
    (handle,) = handles
    handle.detach()
    assert not handle.problems
    judge(handle.run, weights)


def test_untouched_program_has_one_optimizer(tmp_path):
    with AutoWatch({"store": tmp_path / "run", "save_every": 1, "profiler": False, "strict": True}) as watch:
        weights = trained()
    (path,) = watch.run_paths
    judge(open_run(path), weights)
