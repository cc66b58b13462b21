"""Models whose parameters are frozen for the moment: evaluated, or trained through."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def test_a_model_that_is_frozen_for_the_moment_is_evaluated(attach):
    """Who needs the gradients of inputs there, such as the forces of atoms, cannot go without autograd."""
    model = nn.Sequential(nn.Linear(2, 8), nn.SiLU(), nn.Linear(8, 1))
    model[0].requires_grad_(requires_grad=False)  # for good
    optimizer, criterion = torch.optim.SGD(model.parameters(), lr=0.1), nn.MSELoss()

    def loss():
        places = torch.randn(5, 2, requires_grad=True)
        (forces,) = torch.autograd.grad(model(places).sum(), places, create_graph=True)
        return criterion(forces, torch.zeros_like(forces))

    evaluated = []
    with attach(model, optimizer=optimizer, loss=criterion) as handle:
        for step in range(6):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
            if step % 2:
                model[2].requires_grad_(requires_grad=False)
                evaluated.append(loss().item())
                model[2].requires_grad_(requires_grad=True)
    run = handle.run
    assert run.steps(mode="train").tolist() == list(range(6))
    assert run.scalars("loss/MSELoss", mode="eval").values == pytest.approx(evaluated)
    assert run.scalars("loss/MSELoss", mode="train").steps.tolist() == list(range(6))


def test_a_generator_is_trained_through_a_frozen_critic(attach):
    generator, critic = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizers = {
        "g": torch.optim.SGD(generator.parameters(), lr=0.1),
        "c": torch.optim.SGD(critic.parameters(), lr=0.1),
    }
    with attach({"g": generator, "c": critic}, optimizer=optimizers) as handle:
        for _ in range(4):
            for name, frozen in (("c", False), ("g", True)):
                critic.requires_grad_(not frozen)
                optimizers[name].zero_grad()
                critic(generator(torch.randn(4, 2))).mean().backward()
                optimizers[name].step()
    assert handle.run.steps(mode="train").tolist() == list(range(4))
    assert not len(handle.run.steps(mode="eval"))
