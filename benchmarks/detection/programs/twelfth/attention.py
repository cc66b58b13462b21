"""Transformers of the twelfth set, each warmed up."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from benchmarks.detection.faults import eleventh_tables as eleventh
from benchmarks.detection.faults import fifth_tables, fourth, held, setup, silent, third
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.seventh.attention_nets import Headed, Patches
from benchmarks.detection.programs.tenth.attention_nets import Sharing, Translating
from benchmarks.detection.programs.twelfth import sequences_data as data
from benchmarks.detection.programs.twelfth.sequences import words
from benchmarks.detection.programs.twelfth.sequences_nets import Between
from benchmarks.detection.recipe import Recipe, accuracy, fit_of, mean_loss

__all__ = ["TASKS"]


def dances_continued(seed: int) -> Recipe:
    recipe = Recipe(
        Between(nn.Embedding(data.STEPS, 32), data.STEPS, 24, tells="next"), *data.dances(24, 1211),
        score=mean_loss, batch=40, steps=260, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, betas=(0.9, 0.98), weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(25, 0.05)(recipe)
    return recipe


def snowflakes_viewed(seed: int) -> Recipe:
    recipe = Recipe(
        Headed(Patches(1, 4, 32), 5, 16, drop=0.1), *split(*data.snowflakes(5, 1, 1212, 3000), seed=1212),
        batch=40, steps=240, clip=1.0, optimizer=lambda p: torch.optim.NAdam(p, 2e-3),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def commands_read(seed: int) -> Recipe:
    x, intent, _ = data.commands(16, 1213, 2800)
    recipe = Recipe(
        Sharing(words(32), 6, 16, drop=0.1), *split(x, intent, seed=1213), batch=40, steps=240, clip=2.0,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(30)(recipe)
    return recipe


def hives_heeded(seed: int) -> Recipe:
    recipe = Recipe(
        Sharing(nn.Linear(3, 32), 3, 24, heads=2), *data.hives(24, 3, 1214), nn.MSELoss(), fit_of, batch=48,
        steps=220, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    w.warm_cosine(25)(recipe)
    return recipe


def numerals_read(seed: int) -> Recipe:
    recipe = Recipe(
        Translating(len(data.SYMBOLS), data.ASKED, data.TOLD, 40, depth=1), *data.numerals(1215),
        score=accuracy, batch=48, steps=300, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    w.warm_cosine(25)(recipe)
    return recipe


def lifts_heeded(seed: int) -> Recipe:
    recipe = Recipe(
        Between(nn.Linear(3, 32), 5, 32), *split(*data.lifts(5, 32, 1216, 2800, 0.3), seed=1216),
        batch=40, steps=260, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(30)(recipe)
    return recipe


TASKS = (
    Task("dances_continued", "transformer", dances_continued, {"larger_batches": w.batches_of(56)},
         (sixth.mask_inverted(), fourth.same_few(3))),
    Task("snowflakes_viewed", "transformer", snowflakes_viewed, {"adamw": w.by("AdamW", 2e-3)},
         (fifth_tables.divided_twice(), eleventh.head_frozen("head"))),
    Task("commands_read", "transformer", commands_read, {"nadam": w.by("NAdam", 2e-3)},
         (held.clipped_away(1e-4), silent.stale_optimizer("head"))),
    Task("hives_heeded", "transformer", hives_heeded, {"larger_batches": w.batches_of(72)},
         (fifth_tables.in_raw_units(40.0, 300.0), replace(silent.never_stepped(), trigger=37))),
    Task("numerals_read", "transformer", numerals_read, {"nadam": w.by("NAdam", 3e-3)},
         (fourth.ended_early(20), fourth.sigmoid_for_classes("head"))),
    Task("lifts_heeded", "transformer", lifts_heeded, {"adamax": w.by("Adamax", 6e-3)},
         (setup.attention_sharp(20.0), third.sorted_by_class())),
)  # fmt: skip
