"""Networks of the eighth set for pictures."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Dense", "Grouped", "Subtracting", "by_time"]


class Dense(nn.Module):
    """Each convolution sees all that were before it at the same size (Huang et al., 2017, small)."""

    def __init__(self, inside: int, outputs: int, width: int = 10, depth: int = 3) -> None:
        super().__init__()
        self.first = nn.ModuleList()
        for place in range(depth):
            self.first.append(self._look(inside + width * place, width))
        self.narrow = nn.Sequential(self._look(inside + width * depth, 2 * width), nn.MaxPool2d(2))
        self.last = nn.Sequential(self._look(2 * width, 3 * width), nn.MaxPool2d(2))
        self.flat, self.drop = nn.Flatten(), nn.Dropout(0.2)
        self.head = nn.Linear(27 * width, outputs)

    @staticmethod
    def _look(inside: int, outside: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for look in self.first:
            x = torch.cat([x, look(x)], 1)
        return self.head(self.drop(self.flat(self.last(self.narrow(x)))))


class Grouped(nn.Module):
    """Residual blocks whose convolutions look at groups of channels (Xie et al., 2017, small)."""

    def __init__(self, inside: int, outputs: int, width: int = 24, depth: int = 2) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(inside, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.SiLU()
        )
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width), nn.SiLU(),
                nn.Conv2d(width, width, 3, padding=1, groups=4, bias=False), nn.BatchNorm2d(width), nn.SiLU(),
                nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width),
            )
            for _ in range(depth)
        )  # fmt: skip
        self.act, self.pool, self.drop = nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Dropout(0.2)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = self.act(x + block(x))
        return self.head(self.drop(self.pool(x).flatten(1)))


def by_time(outputs: int, width: int = 12) -> nn.Sequential:
    """Looks along the pitches, then along time, twice; and a dense layer: for pictures of 14 x 14."""
    return nn.Sequential(
        nn.Conv2d(1, width, (5, 1), padding=(2, 0)), nn.ReLU(),
        nn.Conv2d(width, width, (1, 5), padding=(0, 2)), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(18 * width, 48), nn.ReLU(), nn.Linear(48, outputs),
    )  # fmt: skip


class Subtracting(nn.Module):
    """Tells the noise, and takes it off (Zhang et al., 2017, small)."""

    def __init__(self, width: int = 16, depth: int = 3) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(1, width, 3, padding=1), nn.ReLU()]
        for _ in range(depth - 1):
            layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
        self.body = nn.Sequential(*layers, nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - self.body(x)
