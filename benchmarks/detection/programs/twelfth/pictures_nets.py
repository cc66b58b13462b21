"""Networks of the twelfth set for pictures."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

__all__ = ["Squeezed", "cleaning", "halving"]


class _Block(nn.Module):
    """A look at half the side, of which each channel is let through as far as the whole picture says."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.look = nn.Conv2d(inside, outside, 3, 2, 1, bias=False)
        self.norm, self.act = nn.BatchNorm2d(outside), nn.ReLU()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(outside, outside // 2, 1), nn.SiLU(),
            nn.Conv2d(outside // 2, outside, 1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.act(self.norm(self.look(x)))
        return x * self.gate(x)


class Squeezed(nn.Module):
    """Three blocks with gates for channels (Hu et al., 2018, small), and the mean over the picture."""

    def __init__(self, inside: int, outputs: int, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Conv2d(inside, width, 3, padding=1)
        self.first, self.second = _Block(width, 2 * width), _Block(2 * width, 3 * width)
        self.drop, self.head = nn.Dropout(0.1), nn.Linear(3 * width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.second(self.first(self.stem(x))).mean((2, 3))))


def halving(channels: tuple[int, ...], outputs: int, act: type[nn.Module], hidden: int) -> nn.Sequential:
    """Looks of 4 x 4 that halve the side of 16 x 16, in groups of channels, and two dense layers."""
    layers: list[nn.Module] = []
    for inside, outside in pairwise(channels):
        layers += [nn.Conv2d(inside, outside, 4, 2, 1), nn.GroupNorm(4, outside), act()]
    side = 16 >> (len(channels) - 1)
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(channels[-1] * side**2, hidden), act(), nn.Linear(hidden, outputs)
    )


def cleaning(inside: int, width: int = 16) -> nn.Sequential:
    """Down to half the side and up by fourfold channels (sub-pixel convolution)."""
    return nn.Sequential(
        nn.Conv2d(inside, width, 5, padding=2), nn.GELU(), nn.Conv2d(width, 2 * width, 4, 2, 1), nn.GELU(),
        nn.Conv2d(2 * width, 4 * width, 3, padding=1), nn.PixelShuffle(2), nn.GELU(),
        nn.Conv2d(width, inside, 3, padding=1),
    )  # fmt: skip
