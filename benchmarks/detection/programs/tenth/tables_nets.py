"""Networks of the tenth set for tables, and losses that some of them are trained with."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

__all__ = ["Above", "Centred", "Cost", "Ensemble", "Factorised", "LogCosh", "Rescaled", "Selected", "reached"]


class _Shared(nn.Module):
    """One weight for some members, who each scale what goes in and out (Wen et al., 2020)."""

    def __init__(self, inside: int, outside: int, members: int) -> None:
        super().__init__()
        self.line = nn.Linear(inside, outside, bias=False)
        self.before = nn.Parameter(1 + 0.5 * torch.randn(members, inside))
        self.after = nn.Parameter(torch.ones(members, outside))
        self.bias = nn.Parameter(torch.zeros(members, outside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.line(x * self.before) * self.after + self.bias


class Ensemble(nn.Module):
    """Members that share most of their weights, and the mean of what they tell (Gorishniy et al., 2025)."""

    def __init__(self, widths: tuple[int, ...], members: int = 4, drop: float = 0.1) -> None:
        super().__init__()
        self.members = members
        self.layers = nn.ModuleList(_Shared(*pair, members) for pair in pairwise(widths[:-1]))
        self.act, self.drop = nn.ReLU(), nn.Dropout(drop)
        self.head = nn.Linear(widths[-2], widths[-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x[:, None].expand(-1, self.members, -1)
        for layer in self.layers:
            x = self.drop(self.act(layer(x)))
        return self.head(x).mean(1)


class Factorised(nn.Module):
    """A line, products of columns by factors of them, and a deep net, added up (Guo et al., 2017)."""

    def __init__(self, inside: int, outputs: int, factors: int = 16, width: int = 128) -> None:
        super().__init__()
        self.line = nn.Linear(inside, outputs)
        self.factors = nn.Parameter(0.1 * torch.randn(inside, factors))
        self.meet = nn.Linear(factors, outputs)
        self.deep = nn.Sequential(nn.Linear(inside, width), nn.ReLU(), nn.Dropout(0.1),
                                  nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs))  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        products = 0.5 * ((x @ self.factors) ** 2 - x**2 @ self.factors**2)
        return self.line(x) + self.meet(products) + self.deep(x)


class Selected(nn.Module):
    """How much each column counts is told of the row itself, before dense layers (Lim et al., 2021)."""

    def __init__(self, inside: int, outputs: int, width: int = 128) -> None:
        super().__init__()
        self.choose = nn.Sequential(nn.Linear(inside, 32), nn.ELU(), nn.Linear(32, inside))
        self.first, self.second = nn.Linear(inside, width), nn.Linear(width, width)
        self.norm, self.act, self.drop = nn.LayerNorm(width), nn.ELU(), nn.Dropout(0.1)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.act(self.first(x * 2 * torch.sigmoid(self.choose(x))))
        return self.head(self.norm(x + self.drop(self.act(self.second(x)))))


class Centred(nn.Module):
    """How near a row is to each of some centres, taken from the rows, and dense layers behind it."""

    def __init__(self, rows: torch.Tensor, outputs: int, width: int = 96) -> None:
        super().__init__()
        self.centres = nn.Parameter(rows[torch.randperm(len(rows))[:width]].clone())
        self.reach = float(rows.shape[1])
        self.beside = nn.Linear(rows.shape[1], width)
        self.mix, self.head = nn.Linear(2 * width, width), nn.Linear(width, outputs)
        self.act = nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        near = torch.exp(-torch.cdist(x, self.centres).square() / self.reach)
        return self.head(self.act(self.mix(torch.cat([near, self.act(self.beside(x))], 1))))


class Rescaled(nn.Module):
    """A layer that stays as it is, each of its outputs times a number that is learnt (Liu et al., 2022)."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.scale = nn.Parameter(torch.ones(layer.out_features))
        self.shift = nn.Parameter(torch.zeros(layer.out_features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * self.scale + self.shift


class Above(nn.Module):
    """Whether a grade is above a bound, of rows above the bound below (Shi et al., 2021): logits, grades."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        bound = torch.arange(told.shape[1])
        asked = (wanted[:, None] >= bound).to(told.dtype)
        above = (wanted[:, None] > bound).to(told.dtype)
        each = nn.functional.binary_cross_entropy_with_logits(told, above, reduction="none")
        return (each * asked).sum() / asked.sum()


def reached(told: torch.Tensor, wanted: torch.Tensor) -> float:
    """Minus how many grades it is wrong by, on average, given logits of each step up."""
    grade = (told.float().sigmoid().cumprod(1) > 0.5).sum(1)
    return -float((grade - wanted).abs().float().mean())


class Cost(nn.Module):
    """Half the deviance of a gamma distribution, given the logarithm of its mean (all N x 1)."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return (wanted * torch.exp(-told) + told - wanted.log() - 1).mean()


class LogCosh(nn.Module):
    """The square of a small error, the size of a large one."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        off = told - wanted
        return (off + nn.functional.softplus(-2 * off) - 0.6931472).mean()
