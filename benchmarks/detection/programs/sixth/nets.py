"""Networks of the sixth set."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Adapted", "Crossed", "Nearby", "conv_coder", "convs", "gated", "separable", "stack"]


def stack(
    widths: tuple[int, ...],
    act: type[nn.Module],
    norm: Callable[[int], nn.Module] | None = None,
    drop: Callable[[], nn.Module] | None = None,
) -> nn.Sequential:
    """Dense layers from the first width to the last, with any norm and any dropout between them."""
    layers: list[nn.Module] = []
    for inside, outside in pairwise(widths[:-1]):
        layers += [nn.Linear(inside, outside), *([norm(outside)] if norm else []), act()]
        layers += [drop()] if drop else []
    return nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))


def gated(inside: int, outputs: int, width: int = 40) -> nn.Sequential:
    """Two layers of which one half opens and shuts the other (Dauphin et al., 2017)."""
    return nn.Sequential(
        nn.Linear(inside, 2 * width), nn.GLU(), nn.Linear(width, 2 * width), nn.GLU(), nn.Dropout(0.1),
        nn.Linear(width, outputs),
    )  # fmt: skip


class Crossed(nn.Module):
    """Products of columns with columns beside a deep net (Wang et al., 2021)."""

    def __init__(self, inside: int, outputs: int, width: int = 48, crosses: int = 2) -> None:
        super().__init__()
        self.crosses = nn.ModuleList(nn.Linear(inside, inside) for _ in range(crosses))
        self.deep = nn.Sequential(nn.Linear(inside, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(inside + width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        crossed = x
        for cross in self.crosses:
            crossed = x * cross(crossed) + crossed
        return self.head(torch.cat([crossed, self.deep(x)], 1))


class Adapted(nn.Module):
    """Layers that stay as they are, each with a narrow addition that is learnt (Houlsby et al., 2019)."""

    def __init__(self, learnt: nn.Sequential, head: nn.Linear, narrow: int = 8) -> None:
        super().__init__()
        dense = [one for one in learnt if isinstance(one, nn.Linear)][:-1]
        self.layers = nn.ModuleList(one.requires_grad_(False) for one in dense)
        self.down = nn.ModuleList(nn.Linear(one.out_features, narrow) for one in dense)
        self.up = nn.ModuleList(nn.Linear(narrow, one.out_features) for one in dense)
        self.act, self.head = nn.ReLU(), head
        for one in self.up:
            nn.init.normal_(one.weight, std=0.01)
            nn.init.zeros_(one.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, down, up in zip(self.layers, self.down, self.up, strict=True):
            x = self.act(layer(x))
            x = x + up(self.act(down(x)))
        return self.head(x)


def convs(
    channels: tuple[int, ...],
    outputs: int,
    act: type[nn.Module] = nn.ReLU,
    norm: Callable[[int], nn.Module] | None = None,
    hidden: int = 0,
) -> nn.Sequential:
    """Convolutions with pooling for pictures of 14 x 14; then a mean of each channel, or a dense layer."""
    layers: list[nn.Module] = []
    for inside, outside in pairwise(channels):
        layers += [nn.Conv2d(inside, outside, 3, padding=1), *([norm(outside)] if norm else []), act()]
        layers += [nn.MaxPool2d(2)]
    if not hidden:
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels[-1], outputs))
    places = (14 >> (len(channels) - 1)) ** 2
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(places * channels[-1], hidden), act(), nn.Linear(hidden, outputs)
    )


def separable(inside: int, outputs: int, width: int = 16) -> nn.Sequential:
    """Each channel is looked at by itself, then all are mixed at each place (as MobileNet, small)."""

    def block(narrow: int, wide: int, stride: int) -> list[nn.Module]:
        return [
            nn.Conv2d(narrow, narrow, 3, stride, 1, groups=narrow, bias=False), nn.BatchNorm2d(narrow),
            nn.Hardswish(), nn.Conv2d(narrow, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.Hardswish(),
        ]  # fmt: skip

    return nn.Sequential(
        nn.Conv2d(inside, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.Hardswish(),
        *block(width, 2 * width, 2), *block(2 * width, 2 * width, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(2 * width, outputs),
    )  # fmt: skip


class Nearby(nn.Module):
    """Patches of 4 x 4, and residual blocks of a wide look and a dense mix (Liu et al., 2022, small)."""

    def __init__(self, inside: int, outputs: int, width: int = 24, depth: int = 2) -> None:
        super().__init__()
        self.stem = nn.Conv2d(inside, width, 4, 2, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 5, padding=2, groups=width), nn.GroupNorm(1, width),
                nn.Conv2d(width, 2 * width, 1), nn.GELU(), nn.Conv2d(2 * width, width, 1),
            )
            for _ in range(depth)
        )  # fmt: skip
        self.norm, self.head = nn.GroupNorm(1, width), nn.Linear(49 * width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(self.norm(x).flatten(1))


def conv_coder(inside: int, width: int = 12, code: int = 24) -> nn.Sequential:
    """Convolutions down to a code of some numbers, and up to the picture of 14 x 14 again."""
    return nn.Sequential(
        nn.Conv2d(inside, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * width, code), nn.Linear(code, 98 * width), nn.ReLU(),
        nn.Unflatten(1, (2 * width, 7, 7)), nn.ConvTranspose2d(2 * width, width, 2, 2), nn.ReLU(),
        nn.Conv2d(width, inside, 3, padding=1),
    )  # fmt: skip
