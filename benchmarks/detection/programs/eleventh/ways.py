"""Mixed precision, gradients of several batches, several optimizers and questions, teachers: eleventh set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import (
    fifth_tables,
    fourth,
    held,
    sagemaker,
    second,
    setup,
    seventh_tables,
    silent,
    third,
)
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.faults import sixth_tables as tables
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.eighth.ways import Both
from benchmarks.detection.programs.eleventh import sequences_data as data
from benchmarks.detection.programs.eleventh.sequences import words
from benchmarks.detection.programs.eleventh.sequences_nets import Looking, Pooled, Temporal
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.ninth.ways_nets import Asked, Questions, Taught, taught_by
from benchmarks.detection.programs.sixth.ways_precision import Halved
from benchmarks.detection.programs.sixth.ways_tasks import _by_two
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of

__all__ = ["TASKS"]


def constellations_quickly(seed: int) -> Recipe:
    x, kind, _ = data.constellations(6, 1, 1121, noise=1.0)
    recipe = Recipe(
        Looking(1, 6), *split(x, kind, seed=1121), batch=48, steps=160, autocast=True,
        optimizer=lambda p: torch.optim.SGD(p, 0.04, momentum=0.9, nesterov=True, weight_decay=1e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def rivers_quickly(seed: int) -> Recipe:
    recipe = Recipe(
        Pooled("GRU", nn.Linear(3, 16), 16, 2, 24, tells="last"), *data.rivers(16, 2, 1122), nn.HuberLoss(),
        fit_of, batch=48, steps=160, clip=1.0, autocast=True,
        optimizer=lambda p: torch.optim.AdamW(p, 1.5e-3, weight_decay=0.02),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


def constellations_halved(seed: int) -> Recipe:
    x, kind, _ = data.constellations(5, 2, 1123)
    body = nn.Sequential(
        nn.Conv2d(2, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 16, 3, padding=1),
        nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    )  # fmt: skip
    recipe = Recipe(
        Halved(body, 256, 5), *split(x, kind, seed=1123), batch=32, steps=160, clip=1.0,
        scaler={"init_scale": 2.0**13, "growth_interval": 100},
        optimizer=lambda p: torch.optim.Adam(p, 1.5e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def strokes_halved(seed: int) -> Recipe:
    x, kind, _ = data.strokes(8, 32, 1124, 2400, 0.5)
    body = nn.Sequential(
        nn.Conv1d(2, 16, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(16, 24, 5, padding=2),
        nn.ReLU(), nn.MaxPool1d(4), nn.Flatten(),
    )  # fmt: skip
    recipe = Recipe(
        Halved(body, 96, 8), *split(x.transpose(1, 2), kind, seed=1124), batch=48, steps=180,
        scaler={"init_scale": 2.0**12, "growth_interval": 120},
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.05),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def reviews_gathered(seed: int) -> Recipe:
    x, topic, *_ = data.reviews(24, 1131, 4000, (0.45, 0.3, 0.15, 0.06, 0.04))
    recipe = Recipe(
        Pooled("LSTM", words(16), 16, 5, drop=0.1), *split(x, topic, seed=1131),
        nn.CrossEntropyLoss(torch.tensor([0.4, 0.6, 1.0, 1.6, 2.0])), balanced_accuracy, batch=24, steps=180,
        accumulate=3, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.05),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def rivers_gathered(seed: int) -> Recipe:
    recipe = Recipe(
        Temporal(3, 3, 16), *data.rivers(18, 3, 1132), nn.MSELoss(), fit_of, batch=32, steps=150,
        accumulate=2, optimizer=lambda p: torch.optim.RMSprop(p, 1e-3),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


def reviews_split(seed: int) -> Recipe:
    """Vectors of words by Adagrad, all else by Adam."""
    x, topic, *_ = data.reviews(20, 1141, 1200)
    return Recipe(
        Pooled("GRU", words(12), 12, 5, both=True, drop=0.1), *split(x, topic, seed=1141), batch=48,
        steps=160, by_hand=_by_two, options={"layer": "first", "own": lambda p: torch.optim.Adagrad(p, 0.05)},
        optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip


def constellations_split(seed: int) -> Recipe:
    """The last layer by SGD with momentum, all else by AdamW."""
    x, kind, _ = data.constellations(6, 2, 1142, noise=0.8)
    return Recipe(
        Looking(2, 6, 12, drop=0.2), *split(x, kind, seed=1142), batch=48, steps=140, by_hand=_by_two,
        options={"layer": "head", "own": lambda p: torch.optim.SGD(p, 0.02, momentum=0.9)},
        optimizer=lambda p: torch.optim.AdamW(p, 1e-3, weight_decay=0.05),
    )  # fmt: skip


def strokes_twice(seed: int) -> Recipe:
    """The sign, and its slant."""
    x, kind, slant = data.strokes(5, 28, 1151, 2400, 0.4)
    recipe = Recipe(
        Asked(Temporal(2, 32, 16), 32, 5, 1), *split(x, torch.cat([kind[:, None], slant], 1), seed=1151),
        Both(), Both.score, batch=64, steps=200, optimizer=lambda p: torch.optim.AdamW(p, 3e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def constellations_twice(seed: int) -> Recipe:
    """The figure, and whether it turned to the left."""
    x, kind, turn = data.constellations(6, 2, 1152, noise=0.4)
    wanted = torch.cat([kind[:, None], (turn > 0).float()], 1)
    recipe = Recipe(
        Asked(Looking(2, 32, 12), 32, 6, 1), *split(x, wanted, seed=1152), Questions(), Questions.score,
        batch=48, steps=200, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def constellations_distilled(seed: int) -> Recipe:
    """Narrow convolutions learn from wide ones."""
    x, kind, _ = data.constellations(6, 1, 1161, noise=0.8)
    with torch.random.fork_rng():
        torch.manual_seed(1161)
        parts = taught_by(Looking(1, 6, 20, drop=0.2), split(x, kind, seed=1161), 1161, 150)
    recipe = Recipe(
        Looking(1, 6, 8), *parts, Taught(2.0, 0.7), Taught.score, batch=48, steps=160,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def strokes_distilled(seed: int) -> Recipe:
    """A small recurrent net learns from causal convolutions."""
    x, kind, _ = data.strokes(7, 24, 1162, 2400, 0.5)
    with torch.random.fork_rng():
        torch.manual_seed(1162)
        parts = taught_by(Temporal(2, 7, 24), split(x, kind, seed=1162), 1162, 150)
    recipe = Recipe(
        Pooled("GRU", nn.Linear(2, 12), 12, 7, 24), *parts, Taught(3.0, 0.8), Taught.score, batch=48,
        steps=200, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 1e-2),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


TASKS = (
    Task("constellations_quickly", "mixed precision", constellations_quickly,
         {"adam": w.by("Adam", 1.5e-3)}, (fifth_tables.normal_weights(), silent.empty_buffer("norm1"))),
    Task("rivers_quickly", "mixed precision", rivers_quickly, {"larger_batches": w.batches_of(64)},
         (third.warm_up_for_ever(), second.set_back(110))),
    Task("constellations_halved", "mixed precision", constellations_halved,
         {"larger_batches": w.batches_of(48)}, (sagemaker.deep_sigmoid(6), silent.scaler_stuck())),
    Task("strokes_halved", "mixed precision", strokes_halved, {"nadam": w.by("NAdam", 1.5e-3)},
         (fourth.half_overflow("mix", 80), third.clipped_before_unscaling())),
    Task("reviews_gathered", "accumulation", reviews_gathered, {"adamax": w.by("Adamax", 2.4e-2)},
         (tables.weights_upside_down(), third.discarded_batches())),
    Task("rivers_gathered", "accumulation", rivers_gathered, {"adam": w.by("Adam", 2e-3)},
         (seventh_tables.uphill(), silent.skipped(50))),
    Task("reviews_split", "several optimizers", reviews_split, {"dropped": w.dropped(0.2)},
         (sagemaker.unbalanced(0.97), sixth.never_stepped_one("first", "rest"))),
    Task("constellations_split", "several optimizers", constellations_split,
         {"larger_batches": w.batches_of(64)}, (setup.missing_softmax(), setup.symmetric())),
    Task("strokes_twice", "multi-task", strokes_twice, {"smaller_batches": w.batches_of(48)},
         (setup.collapsed("mix"), fourth.forgotten("second", slice(5, 6)))),
    Task("constellations_twice", "multi-task", constellations_twice,
         {"adamw": w.by("AdamW", 2e-3, weight_decay=0.05)}, (held.rolled_labels(), setup.oscillating(60.0))),
    Task("constellations_distilled", "distillation", constellations_distilled, {"nadam": w.by("NAdam", 2e-3)},
         (sagemaker.overfit(40, 240), silent.stale_optimizer("head"))),
    Task("strokes_distilled", "distillation", strokes_distilled, {"larger_batches": w.batches_of(64)},
         (fourth.rate_of_another(0.5), third.empty_weights("mix"))),
)  # fmt: skip
