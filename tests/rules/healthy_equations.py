"""Healthy trainings of densities, of solutions of equations, and of the equations themselves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

from tests.rules.healthy_loops import adam, fit, mlp

if TYPE_CHECKING:
    from tests.rules.healthy_loops import Attach


class Flow(nn.Module):
    """Six affine couplings of two numbers, as in RealNVP; gives log-densities."""

    def __init__(self) -> None:
        super().__init__()
        self.scales = nn.ModuleList(nn.Sequential(mlp(1, 1), nn.Tanh()) for _ in range(6))
        self.shifts = nn.ModuleList(mlp(1, 1) for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept, moved, volume = x[:, :1], x[:, 1:], torch.zeros(len(x), 1)
        for scale, shift in zip(self.scales, self.shifts, strict=True):
            by = scale(kept)
            kept, moved, volume = moved * by.exp() + shift(kept), kept, volume + by
        square = (kept**2 + moved**2) / 2
        return (volume - square - math.log(2 * math.pi))[:, 0]


def density(attach: Attach) -> None:
    """The log-density of points along an arc: the loss may fall below zero, and has no floor."""
    model = Flow()

    def loss_of(_: int) -> torch.Tensor:
        angle = torch.rand(128, 1) * math.pi
        points = torch.cat([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(128, 2)
        return -model(points).mean()

    fit(attach, model, loss_of, adam(model, 1e-3))


def oscillator(attach: Attach) -> None:
    """A damped oscillation that is given by its equation: the loss is of derivatives of the net."""
    model = mlp(1, 1, act=nn.Tanh)

    def slope(of: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(of.sum(), at, create_graph=True)[0]

    def loss_of(_: int) -> torch.Tensor:
        time, start = torch.rand(64, 1, requires_grad=True), torch.zeros(1, 1, requires_grad=True)
        place, first = model(time), model(start)
        speed = slope(place, time)
        residual = slope(speed, time) + 4 * speed + 20 * place
        return (
            1e-3 * (residual**2).mean() + ((first - 1) ** 2).mean() + 0.1 * (slope(first, start) ** 2).mean()
        )

    fit(attach, model, loss_of, adam(model, 2e-3))


def trajectory(attach: Attach) -> None:
    """The right side of an equation, learnt through ten steps of a solver that calls it four times each."""
    model, turn, length = mlp(2, 2, act=nn.Tanh), torch.tensor([[-0.1, 2.0], [-2.0, -0.1]]), 0.1

    def after(place: torch.Tensor, side) -> torch.Tensor:
        one = side(place)
        two = side(place + length / 2 * one)
        three = side(place + length / 2 * two)
        four = side(place + length * three)
        return place + length / 6 * (one + 2 * two + 2 * three + four)

    def loss_of(_: int) -> torch.Tensor:
        told = wanted = torch.randn(32, 2)
        errors = []
        for _ in range(10):
            told, wanted = after(told, model), after(wanted, lambda place: place @ turn)
            errors.append((told - wanted).abs().mean())
        return torch.stack(errors).mean()

    fit(attach, model, loss_of, adam(model, 1e-3))


def polynomial(attach: Attach) -> None:
    """A sine by powers of x: the cube begins a hundred times too large, and comes down step by step."""
    x = torch.linspace(-math.pi, math.pi, 500)
    powers, wanted = torch.stack([x, x**2, x**3], 1), torch.sin(x)
    model, criterion = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0, 1)), nn.MSELoss(reduction="sum")
    nn.init.constant_(model[0].weight, 0.3)

    def loss_of(_: int) -> torch.Tensor:
        return criterion(model(powers), wanted)

    fit(attach, model, loss_of, torch.optim.RMSprop(model.parameters(), 1e-3), loss=criterion, steps=500)


EQUATIONS = (density, oscillator, trajectory, polynomial)
