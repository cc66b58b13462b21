"""Networks of the eleventh set for pictures."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Pointed", "looks", "narrowed"]


def looks(
    channels: tuple[int, ...],
    outputs: int,
    act: type[nn.Module],
    norm: Callable[[int], nn.Module] | None = None,
    drop: float = 0.0,
) -> nn.Sequential:
    """Two looks at each size, means of four pixels between them, the largest answer of each channel."""
    layers: list[nn.Module] = []
    for inside, outside in pairwise(channels):
        layers += [nn.Conv2d(inside, outside, 5, padding=2), *([norm(outside)] if norm else []), act()]
        layers += [nn.Conv2d(outside, outside, 3, padding=1), *([norm(outside)] if norm else []), act()]
        layers += [nn.AvgPool2d(2), *([nn.Dropout2d(drop)] if drop else [])]
    return nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(channels[-1], outputs))


class Pointed(nn.Module):
    """A map for each point, and where on average it is high (soft arg-max; Levine et al., 2016): N x 2 P."""

    def __init__(self, points: int, width: int = 16) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 5, padding=2), nn.GroupNorm(4, width), nn.ReLU(),
            nn.Conv2d(width, width, 5, padding=2), nn.GroupNorm(4, width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=2, dilation=2), nn.ReLU(),
        )  # fmt: skip
        self.maps = nn.Conv2d(width, points, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        maps = self.maps(self.body(x))
        chance = maps.flatten(2).softmax(2).view_as(maps)
        line = torch.linspace(-1.5, 1.5, maps.shape[2])
        return torch.stack([(chance.sum(3) * line).sum(2), (chance.sum(2) * line).sum(2)], 2).flatten(1)


def narrowed(inside: int, width: int, code: int) -> nn.Sequential:
    """From 14 x 14 down to a code and up again."""
    return nn.Sequential(
        nn.Conv2d(inside, width, 4, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(98 * width, code), nn.Linear(code, 98 * width), nn.ReLU(),
        nn.Unflatten(1, (2 * width, 7, 7)), nn.ConvTranspose2d(2 * width, width, 4, 2, 1), nn.ReLU(),
        nn.Conv2d(width, inside, 5, padding=2),
    )  # fmt: skip
