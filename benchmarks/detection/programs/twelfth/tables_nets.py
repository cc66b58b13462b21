"""Networks of the twelfth set for tables."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

__all__ = ["Joined", "Mixed", "Paired", "Squared"]


class Joined(nn.Module):
    """Each layer is given what all before it told, and the columns as well (Huang et al., 2017)."""

    def __init__(
        self, inside: int, outputs: int, width: int = 80, depth: int = 3, drop: float = 0.05
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(inside + place * width, width) for place in range(depth))
        self.acts = nn.ModuleList(nn.ReLU() for _ in range(depth))
        self.drop, self.head = nn.Dropout(drop), nn.Linear(inside + depth * width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, act in zip(self.layers, self.acts, strict=True):
            x = torch.cat([x, self.drop(act(layer(x)))], 1)
        return self.head(x)


class Mixed(nn.Module):
    """A vector for each number and each level, mixed over the columns and along each (Tolstikhin, 2021)."""

    def __init__(self, numbers: int, levels: tuple[int, ...], outputs: int, width: int = 20) -> None:
        super().__init__()
        self.numbers, columns = numbers, numbers + len(levels)
        self.weight = nn.Parameter(torch.randn(numbers, width) * 0.5)
        self.bias = nn.Parameter(torch.randn(numbers, width) * 0.1)
        self.embed = nn.ModuleList(nn.Embedding(one, width) for one in levels)
        self.across, self.along = nn.Linear(columns, 2 * columns), nn.Linear(width, 2 * width)
        self.across_back, self.along_back = nn.Linear(2 * columns, columns), nn.Linear(2 * width, width)
        self.first, self.second, self.act = nn.LayerNorm(width), nn.LayerNorm(width), nn.GELU()
        self.norm, self.head = nn.LayerNorm(columns * width), nn.Linear(columns * width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        codes = x[:, self.numbers :].long()
        h = torch.cat([
            x[:, : self.numbers, None] * self.weight + self.bias,
            *(one(codes[:, [place]]) for place, one in enumerate(self.embed)),
        ], 1)  # fmt: skip
        h = h + self.across_back(self.act(self.across(self.first(h).transpose(1, 2)))).transpose(1, 2)
        h = h + self.along_back(self.act(self.along(self.second(h))))
        return self.head(self.norm(h.flatten(1)))


class Paired(nn.Module):
    """Layers of a line and of the product of two lines, normed (Chrysos et al., 2020)."""

    def __init__(self, widths: tuple[int, ...], drop: float = 0.05) -> None:
        super().__init__()
        pairs = list(pairwise(widths[:-1]))
        self.ones = nn.ModuleList(nn.Linear(*pair) for pair in pairs)
        self.others = nn.ModuleList(nn.Linear(*pair) for pair in pairs)
        self.lines = nn.ModuleList(nn.Linear(*pair) for pair in pairs)
        self.norms = nn.ModuleList(nn.LayerNorm(outside) for _, outside in pairs)
        self.drop, self.head = nn.Dropout(drop), nn.Linear(widths[-2], widths[-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for one, other, line, norm in zip(self.ones, self.others, self.lines, self.norms, strict=True):
            x = self.drop(norm(line(x) + one(x) * other(x)))
        return self.head(x)


class Squared(nn.Module):
    """The square of what a rectifier lets through (So et al., 2021)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu(x).square()
