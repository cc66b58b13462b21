"""Mixed precision, gradients of several batches, several optimizers and teachers: twelfth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, seventh_tables, silent, third
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.ninth.ways_nets import Taught, taught_by
from benchmarks.detection.programs.sixth.ways_precision import Halved
from benchmarks.detection.programs.sixth.ways_tasks import _by_two
from benchmarks.detection.programs.twelfth import sequences_data as data
from benchmarks.detection.programs.twelfth.sequences import words
from benchmarks.detection.programs.twelfth.sequences_nets import Parted, Recalling, Shrinking
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def lifts_quickly(seed: int) -> Recipe:
    recipe = Recipe(
        Parted(3, 5, 24, 2, 9, drop=0.1), *split(*data.lifts(5, 40, 1221, 2600, 0.4), seed=1221), batch=32,
        steps=200, autocast=True, optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def snowflakes_halved(seed: int) -> Recipe:
    body = nn.Sequential(
        nn.Conv2d(2, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 20, 3, padding=1),
        nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    )  # fmt: skip
    recipe = Recipe(
        Halved(body, 320, 6), *split(*data.snowflakes(6, 2, 1222, noise=2.0), seed=1222), batch=40, steps=180,
        scaler={"init_scale": 2.0**14, "growth_interval": 90},
        optimizer=lambda p: torch.optim.AdamW(p, 1.5e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


def commands_gathered(seed: int) -> Recipe:
    x, intent, _ = data.commands(15, 1231, 4000)
    recipe = Recipe(
        Recalling("GRU", words(20), 20, 6, 24, both=True, drop=0.1), *split(x, intent, seed=1231), batch=16,
        steps=180, accumulate=3, clip=1.0, optimizer=lambda p: torch.optim.RMSprop(p, 3e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def hives_gathered(seed: int) -> Recipe:
    recipe = Recipe(
        Recalling("LSTM", nn.Linear(3, 16), 16, 1, 28, tells="last"), *data.hives(20, 1, 1232, 3200),
        nn.SmoothL1Loss(), fit_of, batch=24, steps=180, accumulate=2, clip=1.0,
        optimizer=lambda p: torch.optim.NAdam(p, 4e-3),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


def commands_split(seed: int) -> Recipe:
    """Vectors of words by RMSprop, all else by AdamW."""
    x, intent, _ = data.commands(16, 1241, 3000)
    return Recipe(
        Recalling("GRU", words(24), 24, 6, 28, both=True, drop=0.2), *split(x, intent, seed=1241), batch=40,
        steps=200, by_hand=_by_two,
        options={"layer": "first", "own": lambda p: torch.optim.RMSprop(p, 4e-3)},
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.02),
    )  # fmt: skip


def snowflakes_split(seed: int) -> Recipe:
    """The last layer by Adam, all else by SGD with momentum."""
    return Recipe(
        Shrinking(1, 6, 10, drop=0.1), *split(*data.snowflakes(6, 1, 1242, noise=1.0), seed=1242), batch=32,
        steps=180, by_hand=_by_two, options={"layer": "head", "own": lambda p: torch.optim.Adam(p, 1e-3)},
        optimizer=lambda p: torch.optim.SGD(p, 0.02, momentum=0.9, nesterov=True),
    )  # fmt: skip


def lifts_distilled(seed: int) -> Recipe:
    """A shallow net of parted convolutions learns from a wide and deep one."""
    parts = split(*data.lifts(6, 40, 1251, 2600, 0.4), seed=1251)
    with torch.random.fork_rng():
        torch.manual_seed(1251)
        parts = taught_by(Parted(3, 6, 40, 3, 9), parts, 1251, 250)
    recipe = Recipe(
        Parted(3, 6, 20, 1, 9), *parts, Taught(2.5, 0.6), Taught.score, batch=40, steps=240, clip=2.0,
        optimizer=lambda p: torch.optim.NAdam(p, 6e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def snowflakes_distilled(seed: int) -> Recipe:
    """Narrow convolutions learn from wide ones."""
    parts = split(*data.snowflakes(7, 1, 1252, noise=0.9), seed=1252)
    with torch.random.fork_rng():
        torch.manual_seed(1252)
        parts = taught_by(Shrinking(1, 7, 16, drop=0.2), parts, 1252, 160)
    recipe = Recipe(
        Shrinking(1, 7, 6), *parts, Taught(3.0, 0.7), Taught.score, batch=40, steps=200,
        optimizer=lambda p: torch.optim.RMSprop(p, 1e-3),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


TASKS = (
    Task("lifts_quickly", "mixed precision", lifts_quickly, {"adamw": w.by("AdamW", 4e-3, weight_decay=0.05)},
         (held.softmax_over_batch("head"), silent.never_eval())),
    Task("snowflakes_halved", "mixed precision", snowflakes_halved, {"larger_batches": w.batches_of(56)},
         (sagemaker.tanh_saturated(60.0), silent.scaler_stuck())),
    Task("commands_gathered", "accumulation", commands_gathered, {"adam": w.by("Adam", 1.2e-2)},
         (sixth.one_label(), third.discarded_batches())),
    Task("hives_gathered", "accumulation", hives_gathered, {"larger_batches": w.batches_of(32)},
         (second.spread_targets(), third.epsilon_large(4e-3))),
    Task("commands_split", "several optimizers", commands_split, {"dropped": w.dropped(0.1)},
         (held.unknown_words(0.97), silent.stuck_loader(60))),
    Task("snowflakes_split", "several optimizers", snowflakes_split, {"larger_batches": w.batches_of(48)},
         (sagemaker.output_zero("conv3", 60), fourth.older_loaded(10, 120))),
    Task("lifts_distilled", "distillation", lifts_distilled, {"adamw": w.by("AdamW", 6e-3)},
         (setup.oscillating(60.0), silent.left_out("mix"))),
    Task("snowflakes_distilled", "distillation", snowflakes_distilled, {"adam": w.by("Adam", 2e-3)},
         (sagemaker.dead_units("mix", 70), seventh_tables.begun_in_eval())),
)  # fmt: skip
