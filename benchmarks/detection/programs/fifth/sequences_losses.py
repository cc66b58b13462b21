"""Losses and scores of series and texts in the fifth set."""

from __future__ import annotations

import math

import torch
from torch import nn

from benchmarks.detection.programs.networks import divergence
from benchmarks.detection.recipe import fit_of, ranked

__all__ = ["Bell", "Divergence", "Tags", "Yes"]


class Bell(nn.Module):
    """Minus the log-likelihood of numbers under a bell at each place."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        spread = told[..., 1].clamp(-4, 4)
        return (0.5 * ((wanted - told[..., 0]) * torch.exp(-spread)) ** 2 + spread).mean()

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        """Share of the variance that the means explain after the first week (a cycle)."""
        return fit_of(told[:, 7:, 0], wanted[:, 7:])


class Divergence(nn.Module):
    """Square error, and how far a code is from its prior."""

    def __init__(self, numbers: int, code: int, weight: float = 0.3) -> None:
        super().__init__()
        self.numbers, self.code, self.weight = numbers, code, weight

    def forward(self, told: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        again, mean, spread = told.split([self.numbers, self.code, self.code], 1)
        return ((again - x) ** 2).sum(1).mean() + self.weight * divergence(mean, spread)

    def score(self, told: torch.Tensor, x: torch.Tensor) -> float:
        return fit_of(told[:, : self.numbers], x)


class Tags(nn.Module):
    """Cross-entropy of tags; padding (-100) is not asked for."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(told, wanted, ignore_index=-100)

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        """Harmonic mean of how many of the tags beside 0 are found, and of those given are right."""
        best, asked = told.argmax(1), wanted != -100
        right = float(((best == wanted) & (wanted > 0)).sum())
        given, there = float(((best > 0) & asked).sum()), float((wanted > 0).sum())
        return 2 * right / max(1.0, given + there)


class Yes:
    """Score of yes or no."""

    @staticmethod
    def ranked(told: torch.Tensor, wanted: torch.Tensor) -> float:
        """How often a yes is above a no (half of the times by chance)."""
        told, yes = told.flatten().float(), wanted.flatten() > 0.5
        value = ranked(told[yes], told[~yes])
        return value if math.isfinite(value) else 0.0
