"""Healthy trainings on numbers that look odd: far targets, heavy tails, plateaus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from tests.rules.healthy_loops import adam, fit, mlp

if TYPE_CHECKING:
    from tests.rules.healthy_loops import Attach


def quantiles(attach: Attach) -> None:
    """Nine quantiles of targets far from zero: at first all rows get the same."""
    model, share, true = mlp(5, 9), torch.linspace(0.1, 0.9, 9), torch.randn(5, 1)

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(64, 5)
        left = 20 + x @ true + torch.randn(64, 1) - model(x)
        return torch.maximum(share * left, (share - 1) * left).mean()

    fit(attach, model, loss_of, adam(model, 1e-2))


def counts(attach: Attach) -> None:
    model, criterion, true = mlp(5, 1), nn.PoissonNLLLoss(), torch.randn(5, 1) / 2

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(64, 5)
        return criterion(model(x), torch.poisson(torch.exp(x @ true)))

    fit(attach, model, loss_of, loss=criterion)


def survival(attach: Attach) -> None:
    """Cox's partial likelihood, of a batch: it falls by a few percent."""
    model, true = mlp(5, 1), torch.randn(5) / 3

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(64, 5)
        order = (torch.distributions.Exponential(torch.exp(x @ true)).sample()).argsort(descending=True)
        risk = model(x)[order, 0]
        return (torch.logcumsumexp(risk, 0) - risk).mean()

    fit(attach, model, loss_of, adam(model, 1e-3))


def heavy_tails(attach: Attach) -> None:
    model, criterion, true = mlp(5, 1), nn.MSELoss(), torch.randn(5, 1)

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(32, 5)
        tail = torch.distributions.StudentT(2.2).sample((32, 1))
        return criterion(model(x), x @ true + tail)

    fit(attach, model, loss_of, adam(model, 1e-3), loss=criterion)


def far_targets(attach: Attach) -> None:
    """Years: targets far from zero that differ by little."""
    model, criterion, true = mlp(5, 1), nn.L1Loss(), torch.randn(5, 1)
    held = torch.randn(200, 5)

    def evaluate(step: int) -> None:
        if step % 30 == 29:
            model.eval()
            with torch.no_grad():
                criterion(model(held), 100 + held @ true)
            model.train()

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(64, 5)
        return criterion(model(x), 100 + x @ true)

    fit(attach, model, loss_of, adam(model, 1e-2), loss=criterion, after=evaluate)


def parity(attach: Attach) -> None:
    """Nothing is learnt for long, and then all of it."""
    model, criterion = mlp(8, 2, 64), nn.CrossEntropyLoss()

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randint(0, 2, (64, 8)).float() * 2 - 1
        return criterion(model(x), (x[:, :4].prod(1) > 0).long())

    fit(
        attach,
        model,
        loss_of,
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9),
        loss=criterion,
        steps=320,
    )


def energy(attach: Attach) -> None:
    """A field that is the slope of an energy: what the last bias adds to the energy goes for nothing."""
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))

    def loss_of(_: int) -> torch.Tensor:
        x = torch.randn(64, 2, requires_grad=True)
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return (slope + x.detach()).square().mean()

    fit(attach, model, loss_of)


NUMBERS = (
    quantiles,
    counts,
    survival,
    heavy_tails,
    far_targets,
    parity,
    energy,
)
