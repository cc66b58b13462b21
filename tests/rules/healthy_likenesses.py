"""Healthy trainings that learn what is like what, and what is better: their losses say little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional as F

from tests.rules.healthy_loops import adam, digits, fit, mlp, rows

if TYPE_CHECKING:
    from tests.rules.healthy_loops import Attach


class Triplet(nn.Module):
    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        far, alike = torch.cdist(told, told), wanted[:, None] == wanted
        return F.softplus((far * alike).amax(1) - far.masked_fill(alike, 1e9).amin(1)).mean()


def metric_learning(attach: Attach) -> None:
    (x, y), model, criterion = digits(), mlp(64, 6), Triplet()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x, 64)
        return criterion(model(x[at]), y[at])

    fit(attach, model, loss_of, adam(model, 1e-3), loss=criterion)


class Siamese(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.code = nn.Sequential(
            nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 16), nn.BatchNorm1d(16)
        )
        self.guess = nn.Sequential(nn.Linear(16, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 16))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        code = self.code(x)
        return self.guess(code), code.detach()


def self_distillation(attach: Attach) -> None:
    """Two views, a predictor and a stopped gradient: nothing pushes apart, and nothing collapses."""
    (x, _), model = digits(), Siamese()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x, 64)
        (one, left), (two, right) = (model(x[at] + 0.4 * torch.randn(64, 64)) for _ in range(2))
        return -(F.cosine_similarity(one, right).mean() + F.cosine_similarity(two, left).mean()) / 2

    fit(attach, model, loss_of, torch.optim.SGD(model.parameters(), 0.05, momentum=0.9))


def contrastive(attach: Attach) -> None:
    (x, _), model, criterion = digits(), mlp(64, 16), nn.CrossEntropyLoss()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x, 96)
        one, two = (F.normalize(model(x[at] + 0.5 * torch.randn(96, 64))) for _ in range(2))
        return criterion(one @ two.T / 0.3, torch.arange(96))

    fit(attach, model, loss_of, adam(model, 1e-3), loss=criterion)


def ranking(attach: Attach) -> None:
    """Pairs of items, of which one was taken: from log 2 down by a little."""
    taste, items, users = torch.randn(40, 3), nn.Embedding(60, 6), nn.Embedding(40, 6)
    worth = torch.randn(60, 3)
    model = nn.ModuleDict({"things": items, "users": users})
    for one in (items, users):
        nn.init.normal_(one.weight, std=0.05)

    def loss_of(_: int) -> torch.Tensor:
        who, one, two = torch.randint(0, 40, (64,)), torch.randint(0, 60, (64,)), torch.randint(0, 60, (64,))
        first = (taste[who] * (worth[one] - worth[two])).sum(1) + torch.randn(64) > 0
        taken, left = torch.where(first, one, two), torch.where(first, two, one)
        return F.softplus(-(users(who) * (items(taken) - items(left))).sum(1)).mean()

    fit(attach, model, loss_of, adam(model, 5e-3))


LIKENESSES = (
    metric_learning,
    self_distillation,
    contrastive,
    ranking,
)
