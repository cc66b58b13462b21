"""What suits whom, and learning to compare, in the tenth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import (
    fifth_sequences,
    fourth,
    sagemaker,
    setup,
    seventh_tables,
    silent,
    third,
)
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.pairs_nets import Contrasted
from benchmarks.detection.programs.fifth.sequences_losses import Yes
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.tenth import signals_data as data
from benchmarks.detection.recipe import Recipe, neighbours, ranked

__all__ = ["TASKS"]


class Factorised(nn.Module):
    """Products of the vectors of each two kinds, and a weight for each kind (Rendle, 2010): logits N x 1."""

    def __init__(self, kinds: int, width: int = 8, drop: float = 0.1) -> None:
        super().__init__()
        self.kinds, self.own, self.drop = nn.Embedding(kinds, width), nn.Embedding(kinds, 1), nn.Dropout(drop)
        self.head = nn.Linear(width + 1, 1)
        nn.init.normal_(self.kinds.weight, std=0.3)
        nn.init.zeros_(self.own.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        each = self.drop(self.kinds(x))
        pairs = 0.5 * (each.sum(1).square() - each.square().sum(1))
        return self.head(torch.cat([pairs, self.own(x).sum(1)], 1))


def coupons_used(seed: int) -> Recipe:
    recipe = Recipe(
        Factorised(130), *data.coupons((80, 40, 10), 1031), nn.BCEWithLogitsLoss(), Yes.ranked, batch=128,
        steps=240, optimizer=lambda p: torch.optim.Adam(p, 2e-2),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


class Borrowed(nn.Module):
    """Cross-entropy of all books that were borrowed, as shares of one (Liang et al., 2018)."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return -(told.log_softmax(1) * (wanted == 1)).sum(1).mean() / 20

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        """How often a hidden book that was borrowed is above one that was not, by readers; 3 was known."""
        found = [
            ranked(one[which == 1], one[which == 0]) for one, which in zip(told[:300], wanted, strict=False)
            if (which == 1).any()
        ]  # fmt: skip
        return sum(found) / len(found)


def books_borrowed(seed: int) -> Recipe:
    """From what somebody borrowed to what else (an autoencoder with its input partly hidden)."""
    recipe = Recipe(
        nn.Sequential(nn.Dropout(0.5), *stack((120, 64, 120), nn.Tanh)), *data.books(1032), Borrowed(),
        Borrowed.score, batch=100, steps=120, optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


class Grouped(nn.Module):
    """Those of a row's kind in the batch against all others, by cosines (Khosla et al., 2020)."""

    def __init__(self, heat: float = 0.15) -> None:
        super().__init__()
        self.heat = heat

    def forward(self, told: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
        code = nn.functional.normalize(told, dim=1)
        own = torch.eye(len(code), dtype=torch.bool)
        near = (code @ code.T / self.heat).masked_fill(own, -1e9).log_softmax(1)
        alike = (kind[:, None] == kind) & ~own
        return -(near * alike).sum(1).div(alike.sum(1).clamp(min=1)).mean()


def plants_grouped(seed: int) -> Recipe:
    recipe = Recipe(
        stack((18, 128, 96, 16), nn.ReLU, nn.BatchNorm1d), *data.plants(1033), Grouped(), neighbours,
        batch=128, steps=160, optimizer=lambda p: torch.optim.SGD(p, 0.01, momentum=0.9, weight_decay=1e-4),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


class Stepped(nn.Module):
    """Codes of two signals one after the other, (N, 2 * L, 3), by looks in time, side by side."""

    def __init__(self, length: int, width: int = 20, code: int = 24) -> None:
        super().__init__()
        self.length = length
        self.looks = nn.Sequential(
            nn.Conv1d(3, width, 7, 2, 3), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, 2 * width, 5, 2, 2), nn.BatchNorm1d(2 * width), nn.ReLU(),
            nn.AdaptiveMaxPool1d(2), nn.Flatten(),
        )  # fmt: skip
        self.project = stack((4 * width, 48, code), nn.ReLU)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        views = (self.looks(one.transpose(1, 2)) for one in x.split(self.length, 1))
        return torch.cat([self.project(one) for one in views], 1)


class Viewed(Contrasted):
    """Which other code is of the second view of this one? Codes of both views come side by side."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.cat(told.chunk(2, 1)), wanted)


def _walked_again(_recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
    """Each signal twice: begun at another moment, louder or less, and with some noise."""
    views = []
    for _ in range(2):
        later = torch.stack([one.roll(int(torch.randint(40, ())), 0) for one in x])
        views.append(later * (1 + 0.2 * torch.randn(len(x), 1, 1)) + 0.2 * torch.randn_like(x))
    return torch.cat(views, 1), y


def steps_alike(seed: int) -> Recipe:
    train, (x, y) = data.walked(1034)
    recipe = Recipe(
        Stepped(40), train, (torch.cat([x, x], 1), y), Viewed(0.3), neighbours, batch=64, steps=160,
        on_batch=[_walked_again], optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


TASKS = (
    Task("coupons_used", "embedding", coupons_used, {"batches": w.batches_of(192)},
         (third.softmax_of_one("head"), fifth_sequences.embedding_anew("kinds"))),
    Task("books_borrowed", "embedding", books_borrowed, {"batches": w.batches_of(80)},
         (sagemaker.rate_tiny(), silent.scaler_stuck())),
    Task("plants_grouped", "representation", plants_grouped, {"adam": w.by("Adam", 3e-3)},
         (fourth.other_rows(), setup.collapsed("6", 30.0))),
    Task("steps_alike", "representation", steps_alike, {"batches": w.batches_of(96)},
         (seventh_tables.uphill(), silent.skipped(60))),
)  # fmt: skip
