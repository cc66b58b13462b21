"""Networks of the eleventh set for tables, and a loss for levels."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

__all__ = ["Near", "Splined", "Stretched", "Waved", "level_of"]


class _Spline(nn.Module):
    """Bends of each number, as bumps along it that are weighed, beside a line of it (Li, 2024)."""

    def __init__(self, inside: int, outside: int, bumps: int) -> None:
        super().__init__()
        self.norm, self.act = nn.LayerNorm(inside), nn.SiLU()
        self.register_buffer("places", torch.linspace(-2, 2, bumps))
        self.line, self.bend = nn.Linear(inside, outside), nn.Linear(inside * bumps, outside, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        far = (self.norm(x)[..., None] - self.places) / (self.places[1] - self.places[0])
        return self.line(self.act(x)) + self.bend(torch.exp(-far.square()).flatten(1))


class Splined(nn.Module):
    """Layers whose connections are functions that are learnt (Liu et al., 2024)."""

    def __init__(self, widths: tuple[int, ...], bumps: int = 6) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Spline(*pair, bumps) for pair in pairwise(widths[:-1]))
        self.head = nn.Linear(widths[-2], widths[-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Waved(nn.Module):
    """A dense net of the columns and of cosines of lines that stay as drawn (Rahimi, Recht, 2007)."""

    def __init__(self, inside: int, body: nn.Module, waves: int = 64, reach: float = 0.5) -> None:
        super().__init__()
        self.register_buffer("lines", reach * torch.randn(inside, waves) / inside**0.5)
        self.register_buffer("shifts", 2 * torch.pi * torch.rand(waves))
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(torch.cat([x, 2**0.5 * torch.cos(x @ self.lines * torch.pi + self.shifts)], 1))


class Stretched(nn.Module):
    """Each column by a number that is learnt, before a dense net (Holzmueller et al., 2024)."""

    def __init__(self, inside: int, body: nn.Module) -> None:
        super().__init__()
        self.stretch, self.body = nn.Parameter(torch.ones(inside)), body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x * self.stretch)


class Near(nn.Module):
    """Cross-entropy where levels near the right one are half right, too (Diaz, Marathe, 2019)."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        off = (torch.arange(told.shape[1]) - wanted[:, None]).abs().float()
        return nn.functional.cross_entropy(told, (-1.5 * off).softmax(1))


def level_of(told: torch.Tensor, wanted: torch.Tensor) -> float:
    """Minus how many levels the likeliest one is off by, on average."""
    return -float((told.argmax(1) - wanted).abs().float().mean())
