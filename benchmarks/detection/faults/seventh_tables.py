"""Faults that were declared with the tables and pictures of the seventh set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from benchmarks.detection.faults.held import WRONG_OUTPUT
from benchmarks.detection.faults.sagemaker import THROWN_OFF
from benchmarks.detection.faults.setup import NOT_LEARNING
from benchmarks.detection.program import Fault

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

__all__ = ["adjusted_backwards", "answers_unknown", "begun_in_eval", "no_splits", "numbered_rows",
           "rate_grows", "sorted_labels", "uphill"]  # fmt: skip


def answers_unknown(mark: float = 9.0, share: float = 0.08) -> Fault:
    """Some answers are not known, and the file holds a 9 for them where the loss expects 0 or 1."""

    def change(recipe: Recipe) -> None:
        y = recipe.train[1].clone()
        y[torch.rand(len(y), generator=torch.Generator().manual_seed(14)) < share] = mark
        recipe.train = (recipe.train[0], y)

    return Fault("answers_unknown", change, ("labels_out_of_range", *WRONG_OUTPUT), "setup")


def sorted_labels() -> Fault:
    """The column of labels was sorted by itself: each row has the label of another one."""

    def change(recipe: Recipe) -> None:
        x, y = recipe.train
        recipe.train = (x, y.sort(0).values)

    return Fault("sorted_labels", change, (*NOT_LEARNING, "overfit"), "setup")


def rate_grows(factor: float = 1.06, trigger: int = 10) -> Fault:
    """A decay of the rate with a factor above one: it grows with each step, without end."""

    def change(recipe: Recipe) -> None:
        recipe.schedule = lambda step: factor**step
        recipe.clip = None

    return Fault("rate_grows", change, THROWN_OFF, "setup", trigger)


def uphill() -> Fault:
    """The optimizer makes the loss larger, as is right for a gain."""

    def change(recipe: Recipe) -> None:
        plain = recipe.optimizer

        def maximizing(found: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
            optimizer = plain(found)
            for group in optimizer.param_groups:
                group["maximize"] = True
            return optimizer

        recipe.optimizer = maximizing

    rules = ("loss_diverging", "loss_not_decreasing", "exploding_tensor")
    return Fault("uphill", change, rules, "setup")


def begun_in_eval() -> Fault:
    """A model that was made ready for use, and never put back into training mode."""

    def change(recipe: Recipe) -> None:
        recipe.back_to_train = False

        def ready(recipe: Recipe, step: int) -> None:
            if step == 0:
                recipe.model.eval()

        recipe.before_step.append(ready)

    return Fault("begun_in_eval", change, ("training_in_eval_mode",), "silent", by_construction=True)


def adjusted_backwards() -> Fault:
    """How often each class comes is taken off the logits, not put on them: the rare ones are never told."""

    def change(recipe: Recipe) -> None:
        recipe.criterion.prior.neg_()

    return Fault("adjusted_backwards", change, ("class_imbalance", "confusion"), "sagemaker")


def numbered_rows() -> Fault:
    """A column with the number of the row in a file that is sorted by the answer; new rows go on counting."""

    def change(recipe: Recipe) -> None:
        x, y = recipe.train
        number = y.argsort().argsort() / len(y)
        recipe.train = (torch.cat([x, number[:, None].float()], 1), y)
        later = 1 + torch.arange(len(recipe.held[0])) / len(y)
        recipe.held = (torch.cat([recipe.held[0], later[:, None]], 1), recipe.held[1])

    return Fault("numbered_rows", change, ("feature_importance_overweight", "overfit"), "sagemaker")


def no_splits(least: float = 1e6) -> Fault:
    """A leaf must hold more than there is, as it was set for a far larger table: no tree has a branch."""

    def change(recipe: Recipe) -> None:
        recipe.options |= {"min_child_weight": least}

    return Fault("no_splits", change, ("loss_not_decreasing", "constant_output"), "sagemaker")
