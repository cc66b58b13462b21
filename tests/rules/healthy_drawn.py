"""Healthy trainings whose labels are places, or whose weights are drawn anew in each step."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

from tests.rules.healthy_loops import adam, digits, fit, mlp, rows

if TYPE_CHECKING:
    from tests.rules.healthy_loops import Attach

__all__ = ["DRAWN"]


def momentum_contrast(attach: Attach) -> None:
    """Each row is told from a queue of others: its label is always the first place."""
    (x, _), model, criterion = digits(), mlp(64, 16), nn.CrossEntropyLoss()
    slow = copy.deepcopy(model).requires_grad_(False)
    queue = F.normalize(torch.randn(256, 16))

    def loss_of(_: int) -> torch.Tensor:
        nonlocal queue
        some = x[rows(x, 64)]
        for held, new in zip(slow.parameters(), model.parameters(), strict=True):
            held.lerp_(new.detach(), 0.01)
        one = F.normalize(model(some + 0.3 * torch.randn_like(some)))
        two = F.normalize(slow(some + 0.3 * torch.randn_like(some)))
        told = torch.cat([(one * two).sum(1, keepdim=True), one @ queue.T], 1) / 0.2
        queue = torch.cat([two, queue])[:256]
        return criterion(told, torch.zeros(64, dtype=torch.long))

    fit(attach, model, loss_of, adam(model, 1e-3), loss=criterion)


class Uncertain(nn.Module):
    """A layer whose weights have a mean and a deviation each; the deviations begin alike."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.mu = nn.Parameter(0.1 * torch.randn(n_out, n_in))
        self.rho = nn.Parameter(torch.full((n_out, n_in), -4.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        deviation = F.softplus(self.rho)
        return F.linear(x, self.mu + deviation * torch.randn_like(deviation))

    def far(self) -> torch.Tensor:
        """From a normal distribution: its divergence."""
        deviation = F.softplus(self.rho)
        return (-deviation.log() + (deviation**2 + self.mu**2) / 2 - 0.5).sum()


def uncertain_weights(attach: Attach) -> None:
    (x, y), criterion = digits(), nn.CrossEntropyLoss()
    first, last = Uncertain(64, 32), Uncertain(32, 10)
    model = nn.Sequential(first, nn.ReLU(), last)

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        return criterion(model(x[at]), y[at]) + (first.far() + last.far()) / len(x) / 10

    fit(attach, model, loss_of, loss=criterion)


DRAWN = (momentum_contrast, uncertain_weights)
