"""Networks of the fifth set for pictures."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.programs.networks import VariationalCoder

__all__ = [
    "Bottleneck",
    "Deeper",
    "Looking",
    "VariationalConv",
    "VariationalInk",
    "hourglass",
    "ink_code",
    "lenet",
]


def lenet(classes: int, inside: int = 1, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Two convolutions with pooling and two dense layers (LeCun et al., 1998), for pictures of 14 x 14."""
    return nn.Sequential(
        nn.Conv2d(inside, 8, 5, padding=2), act(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), act(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(144, 48), act(), nn.Linear(48, classes),
    )  # fmt: skip


class Deeper(nn.Module):
    """Four convolutions, each normalised, and the mean over the picture (as VGG, small)."""

    def __init__(self, classes: int, inside: int = 1, width: int = 12, drop: float = 0.0) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for place, outside in enumerate((width, width, 2 * width, 2 * width)):
            layers += [
                nn.Conv2d(inside, outside, 3, padding=1, bias=False),
                nn.BatchNorm2d(outside),
                nn.ReLU(),
            ]
            layers += [nn.MaxPool2d(2)] if place % 2 else []
            inside = outside
        self.body = nn.Sequential(*layers)
        self.pool, self.drop, self.head = (
            nn.AdaptiveAvgPool2d(1),
            nn.Dropout(drop),
            nn.Linear(inside, classes),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.pool(self.body(x)).flatten(1)))


class Bottleneck(nn.Module):
    """A residual net: a stem and two blocks, the second at half the side (He et al., 2016)."""

    def __init__(self, classes: int, inside: int = 3, width: int = 12) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(inside, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.first, self.second = self._block(width, width, 1), self._block(width, 2 * width, 2)
        self.around, self.relu = nn.Conv2d(width, 2 * width, 1, 2, bias=False), nn.ReLU()
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(2 * width, classes)

    @staticmethod
    def _block(inside: int, outside: int, stride: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(),
            nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = self.relu(x + self.first(x))
        x = self.relu(self.around(x) + self.second(x))
        return self.head(self.pool(x).flatten(1))


class Looking(nn.Module):
    """Convolutions normalised in groups of channels, smooth activations, a head for several numbers."""

    def __init__(self, outputs: int, width: int = 16) -> None:
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(1, width, 3, 2, 1), nn.GroupNorm(4, width), nn.SiLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.GroupNorm(4, 2 * width), nn.SiLU(),
        )  # fmt: skip
        self.mix, self.act, self.head = nn.Linear(32 * width, 48), nn.SiLU(), nn.Linear(48, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.act(self.mix(self.look(x).flatten(1))))


def ink_code(code: int = 20) -> nn.Sequential:
    """196 shares of ink, a narrow code, and logits of the ink again."""
    return nn.Sequential(
        nn.Linear(196, 96), nn.ReLU(), nn.Linear(96, code), nn.Linear(code, 96), nn.ReLU(), nn.Linear(96, 196)
    )


def hourglass(width: int = 12) -> nn.Sequential:
    """Convolutions down to a quarter of the pixels and up again."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.LeakyReLU(0.1),
        nn.Conv2d(width, 2 * width, 3, 2, 1), nn.LeakyReLU(0.1),
        nn.ConvTranspose2d(2 * width, width, 2, 2), nn.LeakyReLU(0.1), nn.Conv2d(width, 1, 3, padding=1),
    )  # fmt: skip


class VariationalInk(VariationalCoder):
    """Of dense layers; logits of the ink."""

    def __init__(self, code: int = 10, width: int = 96) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(196, width), nn.ReLU())
        self.mean, self.spread = nn.Linear(width, code), nn.Linear(width, code)
        self.decode = nn.Sequential(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, 196))


class VariationalConv(VariationalCoder):
    """Of convolutions; logits of the ink."""

    def __init__(self, code: int = 8, width: int = 10) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(1, width, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.mean, self.spread = nn.Linear(32 * width, code), nn.Linear(32 * width, code)
        self.decode = nn.Sequential(
            nn.Linear(code, 49 * width), nn.ReLU(), nn.Unflatten(1, (width, 7, 7)),
            nn.ConvTranspose2d(width, width, 2, 2), nn.ReLU(), nn.Conv2d(width, 1, 3, padding=1),
        )  # fmt: skip
