"""Faults that were declared with the tables and pictures of the eighth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults.third import TOO_SLOW
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

__all__ = ["averaged_twice", "coded_by_answer"]


def averaged_twice() -> Fault:
    """The mean loss of a batch is divided by the number of all rows once more: SGD hardly moves."""

    def change(recipe: Recipe) -> None:
        plain, rows = recipe.criterion, len(recipe.train[0])

        class Divided(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.plain = plain

            def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
                return self.plain(told, wanted) / rows

        recipe.criterion = Divided()

    causes = (*TOO_SLOW, "learning_rate_too_low", "vanishing_gradient")
    return Fault("averaged_twice", change, (*causes, "loss_not_decreasing"), "setup", causes=causes)


def coded_by_answer(rows_each: int = 2) -> Fault:
    """A kind with hardly more rows than levels becomes the mean answer of its level, with the row's own."""

    def change(recipe: Recipe) -> None:
        (x, y), (held_x, held_y) = recipe.train, recipe.held
        source, levels = torch.Generator().manual_seed(15), len(y) // rows_each
        kind = torch.randint(levels, (len(y),), generator=source)
        known = torch.bincount(kind, minlength=levels)
        mean = torch.bincount(kind, y.float(), levels) / known.clamp(min=1)
        mean[known == 0] = y.float().mean()
        later = mean[torch.randint(levels, (len(held_y),), generator=source)]
        recipe.train = (torch.cat([x, mean[kind][:, None]], 1), y)
        recipe.held = (torch.cat([held_x, later[:, None]], 1), held_y)

    return Fault("coded_by_answer", change, ("feature_importance_overweight", "overfit"), "sagemaker")
