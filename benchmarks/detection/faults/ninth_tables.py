"""Faults that were declared with the tables of the ninth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from benchmarks.detection.faults.sagemaker import THROWN_OFF, TOO_FAST
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

__all__ = ["betas_swapped", "boosted_too_fast"]


def betas_swapped(rate: float) -> Fault:
    """Adam's two shares change places: a mean over all gradients, divided by the size of the last few."""

    def change(recipe: Recipe) -> None:
        recipe.optimizer = lambda p: torch.optim.Adam(p, rate, betas=(0.999, 0.9))

    return Fault("betas_swapped", change, (*THROWN_OFF, "optimizer_settings"), "setup")


def boosted_too_fast(eta: float) -> Fault:
    """A learning rate that is ten times what was meant: each round goes far beyond what is left."""

    def change(recipe: Recipe) -> None:
        recipe.options |= {"eta": eta}

    return Fault("boosted_too_fast", change, (*TOO_FAST, "loss_not_decreasing"), "setup")
