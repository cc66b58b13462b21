"""Tables of the fifth set: customers, houses, woods, bikes, arms, loans; few rows, and rare ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.fifth import tables_data as data
from benchmarks.detection.programs.fifth.tables_nets import TabularResidual, WideAndDeep, normed, tower
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of, ranked

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TASKS", "area", "half_cosine", "with_dropout"]


def area(told: torch.Tensor, wanted: torch.Tensor) -> float:
    """How often a yes is ranked above a no (area under the ROC curve)."""
    told, wanted = told.float().flatten().nan_to_num(), wanted.flatten() > 0.5
    return ranked(told[wanted], told[~wanted])


def half_cosine(steps: int, up: int = 10) -> Callable[[int], float]:
    """Up in a line, down in half a cosine."""
    return lambda step: min(1.0, (step + 1) / up) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))


def churn_dropping(seed: int) -> Recipe:
    return Recipe(
        tower(10, 1, (64, 32), nn.ReLU, 0.2), *data.churn(), nn.BCEWithLogitsLoss(), area, batch=64,
        steps=180, optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip


def churn_wide(seed: int) -> Recipe:
    """A line beside a deep net, steps smaller for weights that moved much."""
    return Recipe(
        WideAndDeep(10), *data.churn(), nn.BCEWithLogitsLoss(), area, batch=50, steps=160,
        optimizer=lambda p: torch.optim.Adagrad(p, 0.03),
    )  # fmt: skip


def terrain_normed(seed: int) -> Recipe:
    return Recipe(
        normed(11, 5, (64, 64), nn.ReLU), *data.terrain(), batch=96, steps=200, schedule=half_cosine(200),
        optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-4),
    )  # fmt: skip


def terrain_residual(seed: int) -> Recipe:
    return Recipe(
        TabularResidual(11, 5), *data.terrain(), nn.CrossEntropyLoss(label_smoothing=0.05), batch=64,
        steps=180, clip=1.0, schedule=half_cosine(180, 20),
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip


def collider_deep(seed: int) -> Recipe:
    recipe = Recipe(
        tower(8, 2, (64, 64, 64, 32), nn.ELU), *data.collider(), batch=100, steps=220,
        optimizer=lambda p: torch.optim.NAdam(p, 3e-3),
    )  # fmt: skip
    w.cooled(recipe)
    return recipe


def activity_gelu(seed: int) -> Recipe:
    return Recipe(
        tower(36, 6, (80, 40), nn.GELU, 0.1), *data.activity(), batch=48, steps=160,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.01),
    )  # fmt: skip


def houses_plain(seed: int) -> Recipe:
    return Recipe(
        tower(6, 1, (64, 64), nn.ReLU), *data.houses(), nn.MSELoss(), fit_of, batch=64, steps=220,
        schedule=half_cosine(220), optimizer=lambda p: torch.optim.Adam(p, 5e-3),
    )  # fmt: skip


class Counted(nn.Module):
    """Minus the Poisson likelihood of a count by the logarithm of its rate."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return nn.functional.poisson_nll_loss(told, wanted)

    @staticmethod
    def score(told: torch.Tensor, wanted: torch.Tensor) -> float:
        return fit_of(told.float().clamp(max=8).exp(), wanted)


def bikes_counted(seed: int) -> Recipe:
    return Recipe(
        tower(9, 1, (48, 48), nn.ReLU), *data.bikes(), Counted(), Counted.score, batch=64, steps=200,
        optimizer=lambda p: torch.optim.RMSprop(p, 1.5e-3),
    )  # fmt: skip


def arm_torques(seed: int) -> Recipe:
    return Recipe(
        tower(8, 2, (72, 72), nn.SiLU), *data.arm(), nn.SmoothL1Loss(), fit_of, batch=64, steps=240,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.01), schedule=half_cosine(240, 20),
    )  # fmt: skip


def concrete_momentum(seed: int) -> Recipe:
    return Recipe(
        normed(8, 1, (48, 24), nn.LeakyReLU, 0.05), *data.concrete(), nn.MSELoss(), fit_of, batch=32,
        steps=180, optimizer=lambda p: torch.optim.SGD(p, 0.02, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip


def credit_weighted(seed: int) -> Recipe:
    """Those that do not pay back weigh seven times as much in the loss."""
    return Recipe(
        tower(8, 1, (48, 24), nn.ReLU, 0.1), *data.credit(),
        nn.BCEWithLogitsLoss(pos_weight=torch.tensor([7.0])), area, batch=128, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip


def fraud_sampled(seed: int) -> Recipe:
    """False payments are drawn as often as right ones."""
    (_, y), _ = data.fraud()
    chance, source = 1.0 / torch.bincount(y)[y], torch.Generator().manual_seed(seed)
    return Recipe(
        tower(12, 2, (48, 24), nn.ReLU, 0.2), *data.fraud(), score=balanced_accuracy, batch=64, steps=170,
        batches=lambda rows: torch.multinomial(chance, len(rows), replacement=True, generator=source),
        optimizer=lambda p: torch.optim.AdamW(p, 1.5e-3, weight_decay=0.1),
    )  # fmt: skip


def clinic_small(seed: int) -> Recipe:
    return Recipe(
        tower(14, 1, (16,), nn.Tanh, 0.3), *data.clinic(), nn.BCEWithLogitsLoss(), area, batch=16, steps=130,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.5),
    )  # fmt: skip


def kernels_small(seed: int) -> Recipe:
    return Recipe(
        tower(7, 3, (24,), nn.ReLU), *data.kernels(), batch=15, steps=140, eval_every=20,
        optimizer=lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=5e-3),
    )  # fmt: skip


def with_dropout(share: float) -> Callable[[Recipe], None]:
    """More of each layer is left out."""

    def change(recipe: Recipe) -> None:
        for one in recipe.model.modules():
            if isinstance(one, nn.Dropout | nn.Dropout2d):
                one.p = share

    return change


TASKS = (
    Task("churn_dropping", "dense", churn_dropping,
         {"momentum": w.by("SGD", 0.05, momentum=0.9, nesterov=True)},
         (fifth.missing_values(1), silent.never_eval(), sagemaker.rate_tiny(1e-4))),
    Task("churn_wide", "dense", churn_wide, {"larger_batches": w.larger_batches(4)},
         (fifth.raw_columns(), silent.left_out("deep.3"), fifth.times_hundred())),
    Task("terrain_normed", "dense", terrain_normed, {"adam": w.by("Adam", 4e-3)},
         (setup.redundant_softmax("6"), silent.left_in_eval(), fourth.other_rows())),
    Task("terrain_residual", "dense", terrain_residual, {"bf16": v.bf16},
         (silent.never_stepped(0.0), fourth.without_gradient("blocks.0"), fifth.own_logarithm())),
    Task("collider_deep", "dense", collider_deep, {"radam": w.by("RAdam", 4e-3)},
         (sagemaker.weights_scaled(1e-3, "weights_small"), fourth.raised(100.0, 90),
          silent.stuck_loader(70))),
    Task("activity_gelu", "dense", activity_gelu, {"dropout": with_dropout(0.35)},
         (fifth.normal_weights(1.0), silent.no_zero_grad(), sagemaker.classes_confused(1, 4))),
    Task("houses_plain", "regression", houses_plain, {"averaged": w.averaged},
         (fifth.in_raw_units(), sagemaker.dead_units("2", 80), fifth.clamped_output("4", 0.0, 1.0))),
    Task("bikes_counted", "regression", bikes_counted, {"adamw": v.adamw(3e-3, 0.02)},
         (sagemaker.rate_kills(2.0), third.sorted_by_class(), silent.detached("2"))),
    Task("arm_torques", "regression", arm_torques, {"rmsprop": w.by("RMSprop", 1.5e-3)},
         (setup.squashed_output("4"), silent.other_model(), fourth.rate_of_another(0.5))),
    Task("concrete_momentum", "regression", concrete_momentum, {"cycled": w.cycled},
         (fifth.only_rectified("8"), silent.empty_buffer("1"), fourth.decay_too_strong(5e-3, 100.0))),
    Task("credit_weighted", "unbalanced", credit_weighted, {"swa": w.swa},
         (second.one_large_column(1, 3e4), silent.skipped(60), setup.symmetric(0.0))),
    Task("fraud_sampled", "unbalanced", fraud_sampled, {"adamax": w.by("Adamax", 4e-3)},
         (third.all_as_they_come(), silent.initialised_again("3", 90), held.clipped_away())),
    Task("clinic_small", "tiny", clinic_small, {"restarts": v.restarts},
         (sagemaker.overfit(30, 400, 0.3), silent.scaler_stuck(), third.labels_one_two())),
    Task("kernels_small", "tiny", kernels_small, {"smoothed": v.smoothed},
         (fifth.l2_in_adam(3e-3, 1.0), silent.stale_optimizer("2"), setup.shuffled_labels())),
)  # fmt: skip
