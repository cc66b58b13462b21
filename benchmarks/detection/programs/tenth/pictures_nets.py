"""Networks and losses of the tenth set for pictures and signals."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Beside", "Overlap", "Sharper", "Waved", "dilated", "strided"]


def strided(
    channels: tuple[int, ...],
    outputs: int,
    act: type[nn.Module],
    norm: Callable[[int], nn.Module] | None = None,
    drop: float = 0.0,
) -> nn.Sequential:
    """Convolutions of which each but the first halves the side, and dense layers: for 14 x 14."""
    layers: list[nn.Module] = []
    for place, (inside, outside) in enumerate(pairwise(channels)):
        layers.append(nn.Conv2d(inside, outside, 3, 2 if place else 1, 1))
        layers += [*([norm(outside)] if norm else []), act()]
    side = {1: 14, 2: 7, 3: 4}[len(channels) - 1]
    layers += [nn.Flatten(), *([nn.Dropout(drop)] if drop else []), nn.Linear(channels[-1] * side**2, 40)]
    return nn.Sequential(*layers, act(), nn.Linear(40, outputs))


class Beside(nn.Module):
    """Residual blocks, normalised before each look (He et al., 2016b, small), at half the side."""

    def __init__(self, inside: int, outputs: int, width: int = 16, depth: int = 3) -> None:
        super().__init__()
        self.stem = nn.Conv2d(inside, width, 3, 2, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.GroupNorm(4, width), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1),
                nn.GroupNorm(4, width), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1),
            )
            for _ in range(depth)
        )  # fmt: skip
        self.norm, self.act, self.pool = nn.GroupNorm(4, width), nn.ReLU(), nn.AdaptiveAvgPool2d(2)
        self.head = nn.Linear(4 * width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(self.pool(self.act(self.norm(x))).flatten(1))


def dilated(width: int = 14) -> nn.Sequential:
    """Looks farther and farther at the same side (Yu, Koltun, 2016): logits for each pixel."""
    layers: list[nn.Module] = []
    for inside, apart in ((1, 1), (width, 2), (width, 4), (width, 1)):
        layers += [
            nn.Conv2d(inside, width, 3, padding=apart, dilation=apart),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.Conv2d(width, 1, 1))


class Overlap(nn.Module):
    """Cross-entropy of each pixel, and how little what is told lies over what is wanted (soft Dice)."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = nn.BCEWithLogitsLoss()

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        chance = told.sigmoid()
        both = (chance * wanted).sum((1, 2, 3))
        dice = (2 * both + 1) / (chance.sum((1, 2, 3)) + wanted.sum((1, 2, 3)) + 1)
        return self.plain(told, wanted) + 1 - dice.mean()


class Sharper(nn.Module):
    """What is added to repeated pixels, four at a time (sub-pixel convolution; Shi et al., 2016)."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.repeat = nn.Upsample(scale_factor=2)
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, 4, 3, padding=1), nn.PixelShuffle(2),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.repeat(x) + self.body(x)


class Waved(nn.Module):
    """Convolutions in time over (N, L, C), normalised by batches, and the mean over it."""

    def __init__(self, inside: int, outputs: int, width: int = 24, drop: float = 0.2) -> None:
        super().__init__()
        self.looks = nn.Sequential(
            nn.Conv1d(inside, width, 7, padding=3), nn.BatchNorm1d(width), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(width, 2 * width, 5, padding=2), nn.BatchNorm1d(2 * width), nn.ReLU(),
        )  # fmt: skip
        self.drop, self.head = nn.Dropout(drop), nn.Linear(2 * width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.looks(x.transpose(1, 2)).mean(2)))
