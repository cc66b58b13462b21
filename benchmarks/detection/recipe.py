"""What a small training is made of, so that a fault can change one part of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "NOTHING", "Recipe", "accuracy", "balanced_accuracy", "fit_of", "likeness", "mean_loss", "neighbours",
    "ranked",
]  # fmt: skip

Hook = Callable[["Recipe", int], None]
NOTHING = (torch.zeros(1), torch.zeros(1))
"""Rows of a training that makes its own."""


def accuracy(output: torch.Tensor, target: torch.Tensor) -> float:
    """Share of the rows (or tokens) that are told rightly."""
    return float((output.argmax(1) == target).float().mean())


def balanced_accuracy(output: torch.Tensor, target: torch.Tensor) -> float:
    """Mean over the classes of the share told rightly."""
    told = output.argmax(1)
    return float(torch.stack([(told[target == one] == one).float().mean() for one in target.unique()]).mean())


def fit_of(output: torch.Tensor, target: torch.Tensor) -> float:
    """Share of the variance that is explained, at least -10."""
    output, target = output.float().reshape(len(target), -1), target.float().reshape(len(target), -1)
    left = ((output - target) ** 2).mean() / ((target - target.mean(0)) ** 2).mean()
    return float(max(-10.0, 1 - float(left))) if torch.isfinite(left) else -10.0


def mean_loss(output: torch.Tensor, target: torch.Tensor) -> float:
    """Minus the cross-entropy, at least -20."""
    loss = float(nn.functional.cross_entropy(output.float(), target))
    return max(-20.0, -loss) if loss == loss else -20.0


def ranked(higher: torch.Tensor, lower: torch.Tensor) -> float:
    """How often one of the first is above one of the second, a tie counting half (area under the ROC)."""
    apart = higher[:, None] - lower
    return float((apart > 0).float().mean() + 0.5 * (apart == 0).float().mean())


def neighbours(told: torch.Tensor, wanted: torch.Tensor) -> float:
    """How well the nearest other row tells the class (0 for a batch in two views)."""
    if len(told) != len(wanted):
        return 0.0
    near = torch.cdist(told.float(), told.float()) + torch.eye(len(told)) * 1e9
    return float((wanted[near.argmin(1)] == wanted).float().mean())


def likeness(made: torch.Tensor, real: torch.Tensor) -> float:
    """Minus the energy distance of two clouds of points, at least -10."""
    within = torch.cdist(made, made).mean(), torch.cdist(real, real).mean()
    apart = 2 * torch.cdist(made, real).mean() - within[0] - within[1]
    score = -float(apart)
    return max(score, -10.0) if score == score else -10.0


@dataclass
class Recipe:
    """A training that has not begun. Faults change its fields; `loop.train` follows it."""

    model: nn.Module
    train: tuple[torch.Tensor, torch.Tensor]
    held: tuple[torch.Tensor, torch.Tensor]
    criterion: nn.Module = field(default_factory=nn.CrossEntropyLoss)
    score: Callable[[torch.Tensor, torch.Tensor], float] = accuracy
    """Of the outputs for the held-out rows; higher is better."""
    optimizer: Callable[[list[nn.Parameter]], torch.optim.Optimizer] = lambda p: torch.optim.Adam(p, 3e-3)
    rate: float | None = None
    """Overrides the learning rate of the optimizer."""
    batch: int = 32
    steps: int = 160
    save_every: int = 2
    accumulate: int = 1
    clip: float | None = None
    schedule: Callable[[int], float] | None = None
    """Factor of the learning rate by step."""
    step_schedule: bool = True
    autocast: bool = False
    scaler: dict[str, Any] | None = None
    """Arguments of a GradScaler."""
    compare: Callable[[Any, torch.Tensor, torch.Tensor], tuple[Any, torch.Tensor]] | None = None
    """From output, inputs and targets to what the criterion is given; outputs and targets by default."""
    eval_every: int = 40
    trained: Callable[[nn.Module], list[nn.Parameter]] = lambda model: [
        one for one in model.parameters() if one.requires_grad
    ]
    """The parameters that the optimizer is given."""
    # What a fault takes away.
    zero_grad: bool = True
    back_to_train: bool = True
    to_eval: bool = True
    steps_optimizer: Callable[[int], bool] = lambda step: True
    batches: Callable[[torch.Tensor], torch.Tensor] = lambda rows: rows
    """Changes the rows that a batch is made of."""
    before_step: list[Hook] = field(default_factory=list)
    on_batch: list[Callable[[Recipe, int, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]] = (
        field(default_factory=list)
    )
    after_optimizer: list[Hook] = field(default_factory=list)
    """Called once the optimizer is made, with step -1."""
    made_optimizer: torch.optim.Optimizer | None = None
    recent: deque[tuple[Any, Any, float]] = field(default_factory=lambda: deque(maxlen=20))
    """Outputs, targets and losses of the last batches."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of a loop of its own."""
    told: list[dict[str, float]] = field(default_factory=list)
    """Filled by the loop: scores and losses at each evaluation, with the step before it."""
    by_hand: Callable[[Recipe, Path | None, int], float] | None = None
    """A loop of its own, for trainings of another shape: gives the score."""
