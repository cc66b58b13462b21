"""Held-out programs on tables."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import held, sagemaker, setup, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.held import data
from benchmarks.detection.programs.held.networks import Gated, Stairs, normalised
from benchmarks.detection.programs.networks import mlp
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of

__all__ = ["TASKS"]


def moons_tanh(seed: int) -> Recipe:
    return Recipe(
        mlp(2, 24, 2, 2, nn.Tanh), *data.moons(), steps=200, optimizer=lambda p: torch.optim.RMSprop(p, 3e-3)
    )


def circles_elu(seed: int) -> Recipe:
    return Recipe(
        mlp(2, 32, 2, 2, nn.ELU), *data.circles(), steps=180,
        optimizer=lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True),
    )  # fmt: skip


def classes_norm(seed: int) -> Recipe:
    return Recipe(
        normalised(24, 48, 5, nn.GELU), *data.made_classes(), batch=48, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.01),
    )  # fmt: skip


def friedman_leaky(seed: int) -> Recipe:
    return Recipe(
        mlp(10, 40, 1, 2, nn.LeakyReLU), *data.friedman(), nn.HuberLoss(), fit_of, steps=220,
        optimizer=lambda p: torch.optim.NAdam(p, 4e-3),
    )  # fmt: skip


def friedman_gated(seed: int) -> Recipe:
    return Recipe(
        Gated(10, 32, 1), *data.friedman(), nn.SmoothL1Loss(), fit_of, batch=64, steps=200,
        optimizer=lambda p: torch.optim.Adagrad(p, 0.05),
    )  # fmt: skip


def blobs_linear(seed: int) -> Recipe:
    """Logistic regression that begins at zero, on classes of different sizes."""
    model = nn.Sequential(nn.Linear(6, 4))
    nn.init.zeros_(model[0].weight)
    return Recipe(
        model, *data.blobs(), score=balanced_accuracy, steps=150,
        optimizer=lambda p: torch.optim.SGD(p, 0.1),
    )  # fmt: skip


def bins_stairs(seed: int) -> Recipe:
    return Recipe(
        Stairs(3, 32, 5), *data.bins(), steps=180, optimizer=lambda p: torch.optim.SGD(p, 0.03, momentum=0.9)
    )


def several_labels(seed: int) -> Recipe:
    return Recipe(
        mlp(20, 40, 6, 2, nn.SiLU), *data.several_labels(), nn.BCEWithLogitsLoss(),
        lambda told, wanted: float(((told > 0) == (wanted > 0.5)).float().mean()), steps=180,
        optimizer=lambda p: torch.optim.Adamax(p, 5e-3),
    )  # fmt: skip


TASKS = (
    Task("moons_tanh", "dense", moons_tanh, {"cosine": v.cosine},
         (sagemaker.tanh_saturated(80.0), setup.shuffled_labels(), setup.redundant_softmax("4"),
          silent.no_zero_grad(), silent.left_out("4"))),
    Task("circles_elu", "dense", circles_elu, {"warm_up": v.warm_up},
         (held.clipped_away(), held.momentum_wild(), silent.other_model(), held.rolled_labels())),
    Task("classes_norm", "dense", classes_norm, {"bf16": v.bf16, "clipped": v.clipped},
         (sagemaker.dead_units("4", 60), held.relu_head("6"), held.softmax_over_batch("6"),
          silent.stuck_loader(70), silent.initialised_again("3", 90))),
    Task("friedman_leaky", "regression", friedman_leaky, {"accumulating": v.accumulating},
         (setup.squashed_output("4"), setup.shuffled_labels(), sagemaker.rate_explodes(1e5),
          silent.detached("0"), setup.swinging(1.5))),
    Task("friedman_gated", "regression", friedman_gated, {},
         (silent.never_eval(), sagemaker.rate_tiny(1e-6), silent.skipped(70))),
    Task("blobs_linear", "dense", blobs_linear, {},
         (sagemaker.unbalanced(0.98), sagemaker.raw_pixels(300.0, 100.0), setup.missing_softmax())),
    Task("bins_stairs", "dense", bins_stairs, {"restarts": v.restarts},
         (silent.empty_buffer("blocks.1.0"), silent.left_in_eval(), held.broken_rows(),
          setup.decay_kills(3.0))),
    Task("several_labels", "dense", several_labels, {"adamw": v.adamw()},
         (setup.diverging(500.0, 90), held.rolled_labels(), silent.never_stepped())),
)  # fmt: skip
