"""Networks of the eighth set for tables."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

__all__ = ["Additive", "Largest"]


class Additive(nn.Module):
    """A small net for each column, and the sum of what they tell (Agarwal et al., 2021)."""

    def __init__(self, inside: int, outputs: int, width: int = 16) -> None:
        super().__init__()
        self.bend = nn.Conv1d(inside, inside * width, 1, groups=inside)
        self.act, self.drop = nn.ReLU(), nn.Dropout(0.05)
        self.mix = nn.Conv1d(inside * width, inside * width, 1, groups=inside)
        self.head = nn.Linear(inside * width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.act(self.bend(x[:, :, None]))
        return self.head(self.drop(self.act(self.mix(x)).flatten(1)))


class Largest(nn.Module):
    """Each unit is the largest of three lines (maxout, Goodfellow et al., 2013)."""

    def __init__(self, widths: tuple[int, ...], drop: float = 0.1) -> None:
        super().__init__()
        self.lines = nn.ModuleList(
            nn.Linear(inside, 3 * outside) for inside, outside in pairwise(widths[:-1])
        )
        self.drop, self.head = nn.Dropout(drop), nn.Linear(widths[-2], widths[-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for lines in self.lines:
            x = self.drop(lines(x).unflatten(1, (-1, 3)).amax(2))
        return self.head(x)
