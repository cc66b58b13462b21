"""Nets and losses of several questions, and of a teacher, in the ninth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.programs.fifth.sequences_losses import Yes
from benchmarks.detection.recipe import accuracy

if TYPE_CHECKING:
    from benchmarks.detection.programs.data import Split

__all__ = ["Asked", "Questions", "Taught", "taught_by"]


class Asked(nn.Module):
    """A body, a dense layer, and beside each other two heads on it: (N, first + second)."""

    def __init__(self, body: nn.Module, width: int, first: int, second: int) -> None:
        super().__init__()
        self.body, self.mix, self.relu = body, nn.Linear(width, 32), nn.ReLU()
        self.named, self.second = nn.Linear(32, first), nn.Linear(32, second)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.relu(self.mix(self.body(x)))
        return torch.cat([self.named(h), self.second(h)], 1)


class Questions(nn.Module):
    """Cross-entropy of the class (the first target), and of yes or no behind it."""

    def forward(self, told: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        named = nn.functional.cross_entropy(told[:, :-1], right[:, 0].long())
        return named + nn.functional.binary_cross_entropy_with_logits(told[:, -1], right[:, 1])

    @staticmethod
    def score(told: torch.Tensor, right: torch.Tensor) -> float:
        """Mean of the share told rightly and of how often a yes is above a no."""
        return (accuracy(told[:, :-1], right[:, 0]) + Yes.ranked(told[:, -1], right[:, 1])) / 2


class Taught(nn.Module):
    """How far softened answers are from a teacher's, and from the right ones (Hinton et al., 2015)."""

    def __init__(self, heat: float = 3.0, share: float = 0.7) -> None:
        super().__init__()
        self.heat, self.share = heat, share

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        soft, right = (wanted[:, :-1] / self.heat).softmax(1), wanted[:, -1].long()
        apart = nn.functional.kl_div((told / self.heat).log_softmax(1), soft, reduction="batchmean")
        return self.share * self.heat**2 * apart + (1 - self.share) * nn.functional.cross_entropy(told, right)

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        """Share of the rows that are told rightly."""
        return accuracy(told, wanted[:, -1])


def taught_by(teacher: nn.Module, parts: Split, seed: int, steps: int = 200) -> Split:
    """Train a teacher, and put its logits before the right answers: targets (N, classes + 1)."""
    (x, y), source = parts[0], torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(teacher.parameters(), 3e-3, weight_decay=0.05)
    teacher.train()
    for _ in range(steps):
        rows = torch.randint(len(x), (64,), generator=source)
        optimizer.zero_grad()
        nn.functional.cross_entropy(teacher(x[rows]), y[rows]).backward()
        optimizer.step()
    teacher.eval()
    with torch.no_grad():
        train, held = ((one, torch.cat([teacher(one), right[:, None]], 1)) for one, right in parts)
    return train, held
