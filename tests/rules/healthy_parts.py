"""Healthy trainings of nets with parts that begin at zero, rest, or are seldom asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional as F

from tests.rules.healthy_classes import classes
from tests.rules.healthy_loops import adam, digits, fit, mlp, rows

if TYPE_CHECKING:
    from tests.rules.healthy_loops import Attach


class Branch(nn.Module):
    """A residual branch whose last layer begins at zero, beside a wide part that does."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.inner, self.last = nn.Linear(64, 32), nn.Linear(32, 32), nn.Linear(32, 32)
        self.head, self.wide = nn.Linear(32, 10), nn.Linear(64, 10, bias=False)
        for one in (self.last, self.wide):
            nn.init.zeros_(one.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.stem(x)
        return self.head(h + self.last(torch.relu(self.inner(h)))) + self.wide(x)


def zero_branch(attach: Attach) -> None:
    (x, y), model, criterion = digits(), Branch(), nn.CrossEntropyLoss()
    y = torch.where(torch.rand(len(y)) < 0.7, torch.randint(0, 10, (len(y),)), y)

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        return criterion(model(x[at]), y[at])

    fit(attach, model, loss_of, torch.optim.Adafactor(model.parameters(), 1e-2), loss=criterion)


class Low(nn.Module):
    """A frozen layer with an update of low rank, of which one half begins at zero."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down, self.up = (
            nn.Linear(layer.in_features, 4, bias=False),
            nn.Linear(4, layer.out_features, bias=False),
        )
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + self.up(self.down(x))


def low_rank(attach: Attach) -> None:
    (x, y), model, criterion = digits(), mlp(), nn.CrossEntropyLoss()
    model[0], model[2] = Low(model[0]), Low(model[2])

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        return criterion(model(x[at]), y[at])

    fit(attach, model, loss_of, loss=criterion)


class Experts(nn.Module):
    """Each row goes to one of eight experts, held even by a term of the loss: some get none at times."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(64, 8)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10)) for _ in range(8)
        )

        self.uneven = torch.zeros(())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shares = self.gate(x).softmax(1)
        share, chosen = shares.max(1)
        self.uneven = 8 * (F.one_hot(chosen, 8).float().mean(0) * shares.mean(0)).sum()
        told = x.new_zeros(len(x), 10)
        for place, expert in enumerate(self.experts):
            if (mine := chosen == place).any():
                told[mine] = share[mine, None] * expert(x[mine])
        return told


def mixture_of_experts(attach: Attach) -> None:
    (x, y), model, criterion = digits(), Experts(), nn.CrossEntropyLoss()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        return criterion(model(x[at]), y[at]) + 0.05 * model.uneven

    fit(attach, model, loss_of, adam(model, 5e-3), loss=criterion)


def sparse_embeddings(attach: Attach) -> None:
    """Two thousand items of which a batch sees some dozens."""
    taste, model, criterion = (
        torch.randn(2000, 3),
        nn.EmbeddingBag(2000, 8, mode="mean", sparse=True),
        nn.MSELoss(),
    )
    weigh = torch.randn(8, 3) / 3

    def loss_of(_: int) -> torch.Tensor:
        items = (torch.rand(64, 4) ** 3 * 2000).long()
        return criterion(model(items) @ weigh, taste[items].mean(1))

    fit(attach, model, loss_of, torch.optim.SparseAdam(model.parameters(), 2e-2), loss=criterion)


class Deep(nn.Module):
    """Fourteen residual blocks, each scaled by a number that begins at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(64, 24), nn.Linear(24, 10)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(24, 24), nn.GELU(), nn.Linear(24, 24)) for _ in range(14)
        )
        self.scales = nn.Parameter(torch.zeros(14))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.stem(x)
        for scale, block in zip(self.scales, self.blocks, strict=True):
            h = h + scale * block(h)
        return self.head(h)


def scaled_from_zero(attach: Attach) -> None:
    (x, y), model, criterion = digits(), Deep(), nn.CrossEntropyLoss()

    def loss_of(_: int) -> torch.Tensor:
        at = rows(x)
        return criterion(model(x[at]), y[at])

    fit(attach, model, loss_of, torch.optim.SGD(model.parameters(), 0.03, momentum=0.9), loss=criterion)


class Added(nn.Module):
    """A layer and a frozen addition of low rank that is zero."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.base, self.down, self.up = nn.Linear(size, size), nn.Linear(size, 4), nn.Linear(4, size)
        for one in (self.up.weight, self.up.bias):
            nn.init.zeros_(one)
        self.down.requires_grad_(False)
        self.up.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.up(self.down(x))


def frozen_addition(attach: Attach) -> None:
    """Additions that are zero and do not train, beside layers that do."""
    classes(attach, model=nn.Sequential(Added(64), nn.Tanh(), nn.Linear(64, 10)))


PARTS = (
    zero_branch,
    low_rank,
    mixture_of_experts,
    sparse_embeddings,
    scaled_from_zero,
    frozen_addition,
)
