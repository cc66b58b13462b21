"""Networks over pairs, and losses that compare, of the eighth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.programs.sixth.nets import stack

__all__ = ["Following", "Liked", "Regularised"]


class Liked(nn.Module):
    """A product of two vectors with a weight for each of its parts (GMF), over kinds numbered through."""

    def __init__(self, kinds: int, width: int = 10, drop: float = 0.1) -> None:
        super().__init__()
        self.kinds, self.own, self.drop = nn.Embedding(kinds, width), nn.Embedding(kinds, 1), nn.Dropout(drop)
        self.mix, self.relu, self.head = nn.Linear(width, 24), nn.ReLU(), nn.Linear(24, 1)
        nn.init.normal_(self.kinds.weight, std=0.3)
        nn.init.zeros_(self.own.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        both = self.drop(self.kinds(x)).prod(1)
        return self.head(self.relu(self.mix(both))) + self.own(x).sum(1)


class Following(nn.Module):
    """Which comes next, by the mean of the vectors of what was (YouTube's recommender); 0 pads."""

    def __init__(self, count: int, width: int = 24, drop: float = 0.1) -> None:
        super().__init__()
        self.items = nn.Embedding(count + 1, width, padding_idx=0)
        self.deep = stack((2 * width, 64, 48), nn.ReLU, drop=lambda: nn.Dropout(drop))
        self.relu, self.head = nn.ReLU(), nn.Linear(48, count)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        there = (x > 0).sum(1, keepdim=True)
        last = self.items(x.gather(1, there - 1)[:, 0])
        return self.head(self.relu(self.deep(torch.cat([self.items(x).sum(1) / there, last], 1))))


class Regularised(nn.Module):
    """Two views' codes alike, each number spread out, and no two that go together (VICReg)."""

    def __init__(self, alike: float = 5.0, spread: float = 5.0, apart: float = 1.0) -> None:
        super().__init__()
        self.alike, self.spread, self.apart = alike, spread, apart

    def forward(self, told: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        one, two = told.chunk(2, 1)
        loss = self.alike * (one - two).square().mean()
        for half in (one, two):
            off = half - half.mean(0)
            between = off.T @ off / (len(off) - 1)
            short = nn.functional.relu(1 - (between.diagonal() + 1e-4).sqrt())
            rest = between - torch.diag(between.diagonal())
            loss = loss + 0.5 * self.spread * short.mean()
            loss = loss + 0.5 * self.apart * rest.square().sum() / half.shape[1]
        return loss
