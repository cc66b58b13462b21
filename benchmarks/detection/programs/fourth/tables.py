"""Tables of the fourth held-out set: order, time, tails, ranks, flags and effects that are hardly there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, silent, third
from benchmarks.detection.loop import steps_of, watched
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.fourth import data, losses
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.fourth.networks import (
    Mixtures,
    Ordered,
    Ranking,
    Switch,
    Tasks,
    Waves,
    normal_tower,
)
from benchmarks.detection.programs.networks import mlp
from benchmarks.detection.programs.second.tables import balanced
from benchmarks.detection.recipe import Recipe, accuracy, fit_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TASKS"]


def grades_ordered(seed: int) -> Recipe:
    recipe = Recipe(
        Ordered(8, 5), *data.grades(), losses.Levels(), losses.Levels.score, batch=60, steps=200,
        optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.02),
    )  # fmt: skip
    w.inverse_root(recipe)
    return recipe


def lifetimes_ranked(seed: int) -> Recipe:
    """A likelihood over whole batches: its height depends on how many rows are in them."""
    return Recipe(
        mlp(6, 40, 1, 2, nn.Softplus), *data.lifetimes(), losses.Cox(), losses.Cox.score, batch=150,
        steps=150, optimizer=lambda p: torch.optim.RMSprop(p, 3e-3, alpha=0.9),
    )  # fmt: skip


def waits_quantiles(seed: int) -> Recipe:
    loss = losses.Quantiles()
    return Recipe(
        mlp(5, 48, 3, 2, nn.ReLU6), *data.waits(), loss, loss.score, batch=48, steps=200,
        optimizer=lambda p: torch.optim.NAdam(p, 4e-3),
    )  # fmt: skip


def branches_mixed(seed: int) -> Recipe:
    """Log-densities: the loss goes below zero."""
    loss = losses.Density()
    return Recipe(
        Mixtures(3), *data.branches(), loss, loss.score, batch=64, steps=240, clip=5.0,
        optimizer=lambda p: torch.optim.Adam(p, 8e-3),
    )  # fmt: skip


def zeros_inflated(seed: int) -> Recipe:
    return Recipe(
        mlp(6, 40, 2, 2, nn.Tanh), *data.zeros(), losses.ZeroInflated(), losses.ZeroInflated.score, batch=80,
        steps=160, optimizer=lambda p: torch.optim.Adagrad(p, 0.03),
    )  # fmt: skip


def queries_listed(seed: int) -> Recipe:
    return Recipe(
        Ranking(6), *data.queries(), losses.Listed(), losses.Listed.score, batch=40, steps=160,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip


def spirals_nesterov(seed: int) -> Recipe:
    """Hardly anything is learnt for a while, and then the arms are told apart."""
    return Recipe(
        mlp(2, 48, 3, 3, nn.Tanh), *data.spirals(), batch=50, steps=300,
        optimizer=lambda p: torch.optim.SGD(p, 0.12, momentum=0.9, nesterov=True),
    )  # fmt: skip


def weak_effect(seed: int) -> Recipe:
    """Six of ten are told rightly at best: the loss falls from 0.69 to 0.66, and jumps by more."""
    return Recipe(
        normal_tower(30, 1, (48,), nn.ReLU, 0.4), *data.weak(), nn.BCEWithLogitsLoss(), balanced, batch=64,
        steps=240, optimizer=lambda p: torch.optim.AdamW(p, 1e-3, weight_decay=0.3),
    )  # fmt: skip


def tasks_together(seed: int) -> Recipe:
    recipe = Recipe(
        Tasks(10, 3), *data.mixed_tasks(), losses.Both(), losses.Both.score, batch=50, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.05),
    )  # fmt: skip
    w.cooled(recipe)
    return recipe


def flags_many(seed: int) -> Recipe:
    """Twelve flags, the rare ones set in one of thirty rows."""
    return Recipe(
        normal_tower(20, 12, (64, 32), nn.GELU), *data.many_labels(), losses.Several(), losses.Several.score,
        batch=50, steps=180, optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip


def _newton(recipe: Recipe, path: Path | None, seed: int) -> float:
    """All rows at once, by steps that look at the curvature (L-BFGS with a closure)."""
    model, (x, y), (held_x, held_y) = recipe.model, recipe.train, recipe.held
    optimizer = torch.optim.LBFGS(
        recipe.trained(model), lr=recipe.rate or 1.0, max_iter=3, history_size=10,
        line_search_fn=recipe.options.get("search"),
    )  # fmt: skip
    with watched(model, optimizer, recipe.criterion, path, recipe.save_every) as handle:
        for step in steps_of(recipe):

            def closure() -> torch.Tensor:
                optimizer.zero_grad()
                loss = recipe.criterion(model(x), y)
                loss = loss + 1e-2 * sum((one**2).sum() for one in model.parameters())
                loss.backward()
                return loss

            optimizer.step(closure)
            if handle is not None and step % 10 == 9:
                with torch.no_grad():
                    handle.log({"val_score": recipe.score(model(held_x), held_y)})
    with torch.no_grad():
        return recipe.score(model(held_x), held_y)


def wines_newton(seed: int) -> Recipe:
    """Sixty rows, learnt within a few steps."""
    return Recipe(mlp(13, 12, 3, 1, nn.Tanh), *data.few_wines(), steps=60, save_every=1, by_hand=_newton,
                  options={"search": "strong_wolfe"})  # fmt: skip


def without_search(recipe: Recipe) -> None:
    recipe.options["search"], recipe.rate = None, 0.3


def outliers_huber(seed: int) -> Recipe:
    """One target of fifteen is far off: the loss jumps, and stays far above what is told well."""
    return Recipe(
        Waves(4, 1), *data.outliers(), nn.HuberLoss(delta=0.5), fit_of, batch=40, steps=200,
        optimizer=lambda p: torch.optim.RAdam(p, 3e-3),
    )  # fmt: skip


def experts_switched(seed: int) -> Recipe:
    loss = losses.Switched(4)
    return Recipe(
        Switch(12, 4), *data.crossed(), loss, loss.score, batch=64, steps=240,
        optimizer=lambda p: torch.optim.Adam(p, 8e-3),
    )  # fmt: skip


def crossed_slowly(seed: int) -> Recipe:
    """Dense layers and a learning rate per row of each weight (Adadelta), half precision."""
    return Recipe(
        mlp(12, 64, 4, 2, nn.LeakyReLU), *data.crossed(), nn.CrossEntropyLoss(), accuracy, batch=64,
        steps=200, autocast=True, optimizer=lambda p: torch.optim.Adadelta(p, 1.0, rho=0.95),
    )  # fmt: skip


TASKS = (
    Task("grades_ordered", "dense", grades_ordered, {"larger_batches": w.larger_batches(4)},
         (sagemaker.not_a_number("body.2", 55), silent.left_out("body.2"), fourth.other_rows())),
    Task("lifetimes_ranked", "regression", lifetimes_ranked, {"adam": w.by("Adam", 4e-3), "cycled": w.cycled},
         (sagemaker.rate_tiny(1e-4), silent.no_zero_grad(), sagemaker.dead_units("2", 60))),
    Task("waits_quantiles", "regression", waits_quantiles, {"on_plateaus": w.on_plateaus},
         (fourth.mostly_dead("2", 0.95, 60), silent.detached("0"), fourth.marked_missing(1))),
    Task("branches_mixed", "regression", branches_mixed, {"small_batches": w.small_batches(12, 300, 4e-3)},
         (fourth.raised(300.0, 80), silent.initialised_again("means", 90),
          fourth.nan_gradient("body.2", 60))),
    Task("zeros_inflated", "regression", zeros_inflated, {"swa": w.swa},
         (fourth.exponent_twice("4"), third.saturated_units("2", 60), fourth.plateau_reversed(8))),
    Task("queries_listed", "dense", queries_listed, {"inverse_root": w.inverse_root},
         (fourth.without_gradient("each"), fourth.same_few(3), sagemaker.dead_units("each.2", 70))),
    Task("spirals_nesterov", "dense", spirals_nesterov, {"cycled": w.cycled},
         (sagemaker.weights_scaled(25.0, "weights_large"), fourth.sigmoid_for_classes("6"),
          fourth.older_loaded(20, 120))),
    Task("weak_effect", "dense", weak_effect, {"swa": w.swa, "momentum": w.by("SGD", 0.02, momentum=0.9)},
         (silent.scaler_stuck(), silent.left_in_eval(), fourth.rate_of_another(1.0))),
    Task("tasks_together", "dense", tasks_together, {"bf16": v.bf16, "accumulating": v.accumulating},
         (fourth.forgotten("kind", slice(1, 4)), fourth.decay_too_strong(5e-3, 100.0),
          silent.stuck_loader(60))),
    Task("flags_many", "dense", flags_many, {"rounded": w.rounded},
         (third.labels_one_two(), silent.never_eval(), silent.empty_buffer("1"))),
    Task("wines_newton", "tiny", wines_newton, {"without_search": without_search},
         (second.one_large_column(4, 1e5), sagemaker.not_a_number("0", 6))),
    Task("outliers_huber", "regression", outliers_huber, {"averaged": w.averaged},
         (second.spread_targets(), fourth.tanh_output("head"), fourth.half_overflow("body.2", 60))),
    Task("experts_switched", "dense", experts_switched, {"noisy_gradients": w.noisy_gradients},
         (silent.left_out("experts.1"), fourth.rate_of_another(0.3), held.clipped_away())),
    Task("crossed_slowly", "dense", crossed_slowly, {"in_double_time": w.in_double_time},
         (sagemaker.classes_confused(0, 2), setup.missing_softmax(), silent.workers_alike(5))),
)  # fmt: skip
