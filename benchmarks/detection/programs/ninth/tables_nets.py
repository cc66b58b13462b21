"""Networks of the ninth set for tables and curves, and losses that some of them are trained with."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

__all__ = ["Binned", "Dispersed", "Experts", "Graded", "LowRank", "Residual", "Spread", "in_time", "ranks"]


class Residual(nn.Module):
    """Blocks that add what one half lets through of the other, normed before (Shazeer, 2020)."""

    def __init__(self, inside: int, outputs: int, width: int = 40, depth: int = 2, drop: float = 0.1) -> None:
        super().__init__()
        self.stem = nn.Linear(inside, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.gates = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.ups = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.downs = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.act, self.drop = nn.SiLU(), nn.Dropout(drop)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for norm, gate, up, down in zip(self.norms, self.gates, self.ups, self.downs, strict=True):
            inner = norm(x)
            x = x + self.drop(down(self.act(gate(inner)) * up(inner)))
        return self.head(self.norm(x))


class Binned(nn.Module):
    """Each number as how far it is through each of some bins (Gorishniy et al., 2022), then dense layers."""

    def __init__(self, rows: torch.Tensor, outputs: int, widths: tuple[int, ...], bins: int = 6) -> None:
        super().__init__()
        edges = rows.quantile(torch.linspace(0, 1, bins + 1), dim=0).T
        self.register_buffer("low", edges[:, :-1].contiguous())
        self.register_buffer("wide", (edges[:, 1:] - edges[:, :-1]).clamp(min=0.1))
        layers: list[nn.Module] = []
        for inside, outside in pairwise((rows.shape[1] * bins, *widths)):
            layers += [nn.Linear(inside, outside), nn.ReLU(), nn.Dropout(0.1)]
        self.body, self.head = nn.Sequential(*layers), nn.Linear(widths[-1], outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        through = ((x[..., None] - self.low) / self.wide).clamp(0, 1)
        return self.head(self.body(2 * through.flatten(1) - 1))


class Experts(nn.Module):
    """Some small nets, and one that says how much each of them counts for a row (Jacobs et al., 1991)."""

    def __init__(self, inside: int, outputs: int, count: int = 4, width: int = 24) -> None:
        super().__init__()
        self.chooser = nn.Linear(inside, count)
        self.first = nn.ModuleList(nn.Linear(inside, width) for _ in range(count))
        self.last = nn.ModuleList(nn.Linear(width, outputs) for _ in range(count))
        self.act = nn.GELU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        share = self.chooser(x).softmax(1)
        told = [last(self.act(first(x))) for first, last in zip(self.first, self.last, strict=True)]
        return (share[:, None] * torch.stack(told, 2)).sum(2)


class LowRank(nn.Module):
    """A layer that stays as it is, and a product of two narrow ones beside it (Hu et al., 2022)."""

    def __init__(self, layer: nn.Linear, rank: int = 6) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + 2 * self.up(self.down(x))


def in_time(count: int, channels: tuple[int, ...] = (1, 12, 24, 32)) -> nn.Sequential:
    """Convolutions along curves of 48 points, the mean over time, and two dense layers."""
    layers: list[nn.Module] = []
    for inside, outside in pairwise(channels):
        layers += [nn.Conv1d(inside, outside, 5, padding=2, bias=False), nn.BatchNorm1d(outside), nn.ReLU()]
        layers += [nn.MaxPool1d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(2), nn.Flatten(), nn.Dropout(0.1),
                         nn.Linear(2 * channels[-1], 32), nn.ReLU(), nn.Linear(32, count))  # fmt: skip


class Graded(nn.Module):
    """Whether a grade is above each bound (Cao et al., 2020): logits (N x bounds), grades (N)."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        above = (wanted[:, None] > torch.arange(told.shape[1])).to(told.dtype)
        return nn.functional.binary_cross_entropy_with_logits(told, above)


def ranks(told: torch.Tensor, wanted: torch.Tensor) -> float:
    """Minus how many grades it is wrong by, on average."""
    return -float(((told > 0).sum(1) - wanted).abs().float().mean())


class Spread(nn.Module):
    """Mean and logarithm of the variance are told (N x 2): minus the likelihood of a normal distribution."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        mean, log = told[:, :1], told[:, 1:]
        return 0.5 * (log + (wanted - mean) ** 2 * torch.exp(-log)).mean()


class Dispersed(nn.Module):
    """Minus the likelihood of counts that vary more than by chance, given logarithms of their means."""

    alike = 6.0

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        total = torch.logaddexp(told, torch.tensor(self.alike).log())
        return ((wanted + self.alike) * total - wanted * told).mean()
