"""Recurrent networks, convolutions in time and coders of series of the fifth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, setup, silent, third
from benchmarks.detection.program import Fault, Task
from benchmarks.detection.programs.fifth import sequences_data as series
from benchmarks.detection.programs.fifth import sequences_texts as texts
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Bell, Divergence, Tags
from benchmarks.detection.programs.fifth.sequences_nets import (
    Engine,
    Forecaster,
    Gestures,
    Lines,
    Metered,
    Retold,
    Selling,
    Shaken,
    Stages,
    Tagger,
)
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def gestures_named(seed: int) -> Recipe:
    recipe = Recipe(
        Gestures(2, 5), *series.gestures(), batch=48, steps=200, clip=5.0,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.01),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def demand_ahead(seed: int) -> Recipe:
    return Recipe(
        Forecaster(5, 6), *series.demand(), nn.HuberLoss(), fit_of, batch=40, steps=200, clip=1.0,
        optimizer=lambda p: torch.optim.Adam(p, 6e-3), schedule=lambda step: 0.99**step,
    )  # fmt: skip


def turbines_left(seed: int) -> Recipe:
    return Recipe(
        Engine(6), *series.turbines(), nn.MSELoss(), fit_of, batch=50, steps=200,
        optimizer=lambda p: torch.optim.RMSprop(p, 3e-3),
    )  # fmt: skip


def sales_likely(seed: int) -> Recipe:
    """Mean and spread of the next week at each week, by likelihood (DeepAR)."""
    return Recipe(
        Selling(), *series.sales(), Bell(), Bell.score, batch=48, steps=220, clip=2.0,
        optimizer=lambda p: torch.optim.Adam(p, 8e-3),
    )  # fmt: skip


def code_told(seed: int) -> Recipe:
    return Recipe(
        Lines(98, 4), *texts.code_lines(), batch=40, steps=220,
        optimizer=lambda p: torch.optim.Adam(p, 1e-2, weight_decay=1e-5),
    )  # fmt: skip


def names_tagged(seed: int) -> Recipe:
    recipe = Recipe(
        Tagger(60, 4), *texts.named(), Tags(), Tags.score, batch=32, steps=180, clip=1.0,
        optimizer=lambda p: torch.optim.NAdam(p, 6e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def bearings_worn(seed: int) -> Recipe:
    recipe = Recipe(
        Shaken(4), *series.bearings(), nn.CrossEntropyLoss(label_smoothing=0.05), batch=48, steps=180,
        optimizer=lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=5e-4, nesterov=True),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def activities_staged(seed: int) -> Recipe:
    return Recipe(
        Stages(3, 4), *series.activities(), batch=24, steps=200,
        optimizer=lambda p: torch.optim.Adam(p, 5e-3),
    )  # fmt: skip


def meters_varied(seed: int) -> Recipe:
    (x, _), (held, _) = series.meters()
    loss = Divergence(24, 5)

    def more(recipe: Recipe, step: int) -> None:
        recipe.criterion.weight = 0.3 * min(1.0, step / 80)

    return Recipe(
        Metered(), (x, x), (held, held), loss, loss.score, batch=64, steps=240, before_step=[more],
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip


def heavy_divergence(recipe: Recipe) -> None:
    """The code's divergence is added up and the square error is a mean: the code tells nothing."""
    recipe.before_step.clear()
    recipe.criterion.weight = 24.0


def orbits_retold(seed: int) -> Recipe:
    return Recipe(
        Retold(2, 20), *series.orbits(), nn.MSELoss(), fit_of, batch=50, steps=280, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=1e-4),
    )  # fmt: skip


TASKS = (
    Task("gestures_named", "recurrent", gestures_named, {"larger_batches": w.batches_of(96, 8e-3)},
         (sagemaker.dead_units("mix", 70), setup.symmetric(0.05), silent.left_in_eval())),
    Task("demand_ahead", "recurrent", demand_ahead, {"cosine": w.cosine},
         (fifth.raw_readings(5000.0, 1500.0), silent.skipped(70), fourth.ended_early(10))),
    Task("turbines_left", "recurrent", turbines_left, {"adam": w.by("Adam", 5e-3)},
         (setup.oscillating(100.0), sagemaker.deep_sigmoid(8), silent.left_out("rnn"))),
    Task("sales_likely", "recurrent", sales_likely, {"bf16": w.bf16},
         (fourth.nan_gradient("mean", 70), fourth.older_loaded(30, 110), sagemaker.rate_tiny(1e-3))),
    Task("code_told", "recurrent", code_told, {"clipped": w.clipped(0.5)},
         (sagemaker.unbalanced(0.96), fifth.embedding_anew("embed"), fifth.softmax_kept("head"))),
    Task("names_tagged", "recurrent", names_tagged, {"dropped": w.dropped(0.4)},
         (silent.left_out("embed"), held.unknown_words(0.95, 1), silent.never_eval())),
    Task("bearings_worn", "convolution", bearings_worn, {"adamw": w.by("AdamW", 3e-3, weight_decay=0.05)},
         (silent.empty_buffer("blocks.0.1"), sagemaker.classes_confused(1, 3),
          silent.stale_optimizer("head"))),
    Task("activities_staged", "convolution", activities_staged, {"stepped": w.stepped},
         (sagemaker.not_a_number("stem", 60), silent.workers_alike(4), fourth.plateau_reversed(8))),
    Task("meters_varied", "autoencoder", meters_varied, {"radam": w.by("RAdam", 4e-3)},
         (Fault("heavy_divergence", heavy_divergence, third.COLLAPSED, "setup"),
          sagemaker.dead_units("decode.2", 90), silent.left_out("spread"))),
    Task("orbits_retold", "autoencoder", orbits_retold, {"adam": w.by("Adam", 1e-2)},
         (silent.initialised_again("head", 120), sagemaker.weights_scaled(15.0, "weights_large"),
          fifth.gap_marked(1))),
)  # fmt: skip
