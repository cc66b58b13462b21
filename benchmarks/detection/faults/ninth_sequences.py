"""Faults that were declared with the sequences and ways of the ninth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults.sagemaker import THROWN_OFF
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

__all__ = ["undivided"]


def undivided() -> Fault:
    """Gradients of several batches are added up, and nobody divides by how many: the rate is too high."""

    def change(recipe: Recipe) -> None:
        plain, batches = recipe.criterion, recipe.accumulate

        class Whole(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.plain = plain

            def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
                return batches * self.plain(told, wanted)

        recipe.criterion = Whole()

    return Fault("undivided", change, THROWN_OFF, "setup")
