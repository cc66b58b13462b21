"""Autoencoders and adversarial pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import sagemaker, setup, silent
from benchmarks.detection.loop import steps_of, watched
from benchmarks.detection.program import Fault, Task
from benchmarks.detection.programs import data
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.networks import Elbo, Variational, autoencoder, mlp
from benchmarks.detection.recipe import NOTHING, Recipe, fit_of, likeness

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TASKS"]


def digits_autoencoder(seed: int) -> Recipe:
    (x, _), (held, _) = data.digits()
    return Recipe(autoencoder(), (x, x), (held, held), nn.MSELoss(), fit_of, steps=180)


def digits_variational(seed: int) -> Recipe:
    (x, _), (held, _) = data.digits()
    return Recipe(
        Variational(),
        (x, x),
        (held, held),
        Elbo(),
        lambda told, wanted: fit_of(told[:, :64], wanted),
        steps=180,
    )


def _points(kind: str, count: int, source: torch.Generator) -> torch.Tensor:
    """A ring, or four clouds."""
    if kind == "ring":
        angle = torch.rand(count, generator=source) * 6.2832
        place = torch.stack([angle.cos(), angle.sin()], 1)
    else:
        place = torch.randint(0, 2, (count, 2), generator=source) * 2.0 - 1
    return place + 0.1 * torch.randn(count, 2, generator=source)


def _adversarial(kind: str):
    """Train both nets in turns; the recipe's model holds them, its flags say what is wrong."""

    def by_hand(recipe: Recipe, path: Path | None, seed: int) -> float:
        source = torch.Generator().manual_seed(seed)
        maker, judge = recipe.model["maker"], recipe.model["judge"]
        rate = recipe.rate or 1e-3
        left = torch.optim.Adam(maker.parameters(), rate, betas=(0.5, 0.9))
        right = torch.optim.Adam(judge.parameters(), rate, betas=(0.5, 0.9))
        criterion = nn.BCEWithLogitsLoss()
        pair, both = {"maker": maker, "judge": judge}, {"maker": left, "judge": right}
        with watched(pair, both, criterion, path):
            for _ in steps_of(recipe):
                real, noise = _points(kind, 64, source), torch.randn(64, 4, generator=source)
                if recipe.zero_grad:
                    right.zero_grad()
                made = maker(noise)
                loss = criterion(judge(real), torch.ones(64, 1)) + criterion(
                    judge(made.detach()), torch.zeros(64, 1)
                )
                loss.backward()
                right.step()
                if recipe.zero_grad:
                    left.zero_grad()
                criterion(judge(made), torch.ones(64, 1)).backward()
                left.step()
        with torch.no_grad():
            return likeness(maker(torch.randn(500, 4, generator=source)), _points(kind, 500, source))

    def build(seed: int) -> Recipe:
        model = nn.ModuleDict({"maker": mlp(4, 32, 2), "judge": mlp(2, 32, 1)})
        return Recipe(model, NOTHING, NOTHING, steps=160, by_hand=by_hand)

    return build


def _rate(rate: float, rules: tuple[str, ...]) -> Fault:
    def change(recipe: Recipe) -> None:
        recipe.rate = rate

    return Fault("rate_high", change, rules, "setup")


TASKS = (
    Task("digits_autoencoder", "autoencoder", digits_autoencoder,
         {"bf16": v.bf16},
         (sagemaker.dead_units("0"), setup.collapsed("2"), silent.detached("2"),
          silent.stale_optimizer("2"))),
    Task("digits_variational", "autoencoder", digits_variational,
         {"adamw": v.adamw()},
         (setup.collapsed("mean"), sagemaker.rate_explodes(), silent.left_out("mean"),
          silent.initialised_again("mean"))),
    Task("ring_pair", "adversarial", _adversarial("ring"), {},
         (silent.no_zero_grad(), sagemaker.not_a_number("maker.2", 50))),
    Task("clouds_pair", "adversarial", _adversarial("clouds"), {},
         (silent.no_zero_grad(), sagemaker.dead_units("maker.2"))),
)  # fmt: skip
