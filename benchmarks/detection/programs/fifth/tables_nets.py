"""Networks of the fifth set for tables."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["TabularResidual", "WideAndDeep", "normed", "tower"]


def tower(
    width_in: int, outputs: int, widths: tuple[int, ...], act: type[nn.Module], drop: float = 0.0
) -> nn.Sequential:
    """Dense layers, each with its activation and, where it is asked for, dropout."""
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(width_in, width), act(), *([nn.Dropout(drop)] if drop else [])]
        width_in = width
    return nn.Sequential(*layers, nn.Linear(width_in, outputs))


def normed(
    width_in: int, outputs: int, widths: tuple[int, ...], act: type[nn.Module], drop: float = 0.0
) -> nn.Sequential:
    """The same with batch normalisation before each activation."""
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(width_in, width), nn.BatchNorm1d(width), act()]
        layers += [nn.Dropout(drop)] if drop else []
        width_in = width
    return nn.Sequential(*layers, nn.Linear(width_in, outputs))


class WideAndDeep(nn.Module):
    """A line and a deep net, added up (Cheng et al., 2016)."""

    def __init__(self, width_in: int) -> None:
        super().__init__()
        self.wide = nn.Linear(width_in, 1)
        self.deep = nn.Sequential(
            nn.Linear(width_in, 48),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(48, 24),
            nn.ReLU(),
            nn.Linear(24, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.wide(x) + self.deep(x)


class TabularResidual(nn.Module):
    """Residual blocks of dense layers, each normalised at its beginning (Gorishniy et al., 2021)."""

    def __init__(self, width_in: int, outputs: int, width: int = 48, depth: int = 3) -> None:
        super().__init__()
        self.stem = nn.Linear(width_in, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width),
                nn.Linear(width, 2 * width),
                nn.ReLU(),
                nn.Dropout(0.1),
                nn.Linear(2 * width, width),
            )
            for _ in range(depth)
        )
        self.norm, self.relu, self.head = nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(self.relu(self.norm(x)))
