"""Several things learnt at once, and several optimizers, in the sixth set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection import loop
from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, setup, third
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Yes
from benchmarks.detection.programs.sixth import sequences_data as series
from benchmarks.detection.programs.sixth import ways_data as data
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.pairs_nets import curves
from benchmarks.detection.programs.sixth.sequences_nets import Recurrent
from benchmarks.detection.recipe import Recipe, accuracy, fit_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TASKS"]


def _by_two(recipe: Recipe, path: Path | None, seed: int) -> float:
    """One layer is left to an optimizer of its own; both step in turn."""
    model, batches = recipe.model, loop._batches(recipe, seed)
    own = {id(one) for one in model.get_submodule(recipe.options["layer"]).parameters()}
    groups = [[one for one in model.parameters() if (id(one) in own) == first] for first in (True, False)]
    both = {"own": recipe.options["own"](groups[0]), "rest": recipe.optimizer(groups[1])}
    with loop.watched(model, both, recipe.criterion, path, recipe.save_every) as handle:
        model.train()
        for step in loop.steps_of(recipe):
            x, y = next(batches)
            for change in recipe.on_batch:
                x, y = change(recipe, step, x, y)
            for one in both.values():
                one.zero_grad()
            loop._loss(recipe, handle, x, y).backward()
            for name in recipe.options.get("steps", both):
                both[name].step()
            if (step + 1) % recipe.eval_every == 0:
                loop._evaluate(recipe, handle, step)
    return loop._evaluate(recipe, None)


def dialects_told(seed: int) -> Recipe:
    """Vectors of words by Adagrad, all else by AdamW."""
    return Recipe(
        Recurrent("GRU", 20, 3, 28, words=42, tells="most", drop=0.2),
        *series.chains_told(6, 40, 24, 661, 3), batch=48, steps=200, by_hand=_by_two,
        options={"layer": "embed", "own": lambda p: torch.optim.Adagrad(p, 0.08)},
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip


def engines_told(seed: int) -> Recipe:
    """Convolutions by SGD with momentum, the last layer by Adam."""
    return Recipe(
        curves(3, 40, 6, 12), *series.across(series.systems(6, 3, 40, 662, noise=0.8)), batch=48, steps=220,
        by_hand=_by_two, options={"layer": "7", "own": lambda p: torch.optim.Adam(p, 5e-4)},
        optimizer=lambda p: torch.optim.SGD(p, 0.02, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip


class Courses(nn.Module):
    """A GRU over the hours, one head for the course and one for the days left, side by side."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.rnn, self.drop = nn.GRU(5, width, batch_first=True), nn.Dropout(0.1)
        self.course = nn.Linear(width, 3)
        self.days = nn.Sequential(nn.Linear(width, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.drop(self.rnn(x)[0][:, -1])
        return torch.cat([self.course(h), self.days(h)], 1)


class Both(nn.Module):
    """Cross-entropy of the first columns, and the square error of the last."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        course = nn.functional.cross_entropy(told[:, :-1], wanted[:, 0].long())
        return course + (told[:, -1] - wanted[:, 1]).square().mean()

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        right = accuracy(told[:, :-1], wanted[:, 0].long())
        return (right + fit_of(told[:, -1:], wanted[:, 1:])) / 2


def ranked_twice(told: torch.Tensor, wanted: torch.Tensor) -> float:
    """Mean over two questions of how often a yes is above a no."""
    return (Yes.ranked(told[:, 0], wanted[:, 0]) + Yes.ranked(told[:, 1], wanted[:, 1])) / 2


def stays_foretold(seed: int) -> Recipe:
    recipe = Recipe(
        Courses(), *data.stays(), Both(), Both.score, batch=40, steps=200, clip=2.0,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def buyers_foretold(seed: int) -> Recipe:
    return Recipe(
        stack((12, 40, 40, 2), nn.ReLU), *data.buyers(), nn.BCEWithLogitsLoss(), ranked_twice, batch=64,
        steps=220, optimizer=lambda p: torch.optim.SGD(p, 0.2, momentum=0.9, weight_decay=1e-3),
        schedule=lambda step: 0.99**step,
    )  # fmt: skip


TASKS = (
    Task("dialects_told", "several optimizers", dialects_told, {"nadam": w.by("NAdam", 3e-3)},
         (sixth.never_stepped_one("embed", "rest"), fourth.other_rows())),
    Task("engines_told", "several optimizers", engines_told, {"larger_batches": w.batches_of(72)},
         (sixth.one_label(), setup.inputs_constant(70))),
    Task("stays_foretold", "multi-task", stays_foretold, {"adamw": w.by("AdamW", 4e-3, weight_decay=0.05)},
         (fourth.forgotten("days", slice(3, 4)), fifth.gap_marked(1, 0.3))),
    Task("buyers_foretold", "multi-task", buyers_foretold, {"adam": w.by("Adam", 6e-3)},
         (setup.constant_output("4"), third.summed_loss())),
)  # fmt: skip
