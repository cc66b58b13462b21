"""Transformers of the fifth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import sequences_data as series
from benchmarks.detection.programs.fifth import sequences_texts as texts
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.attention_nets import (
    Glimpses,
    Patched,
    Reading,
    Rewriting,
    Visiting,
    Writing,
)
from benchmarks.detection.recipe import Recipe, fit_of, mean_loss

__all__ = ["TASKS"]


def handbook_written(seed: int) -> Recipe:
    recipe = Recipe(
        Writing(len(texts.KEPT), 24, drop=0.0), *texts.handbook(24), score=mean_loss, batch=24,
        steps=220, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, betas=(0.9, 0.95), weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(24)(recipe)
    return recipe


def dates_rewritten(seed: int) -> Recipe:
    recipe = Recipe(
        Rewriting(len(texts.SIGNS), 18, 28), *texts.dates(), batch=64, steps=240, clip=1.0,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3, betas=(0.9, 0.98), eps=1e-9),
    )  # fmt: skip
    w.warm_cosine(40)(recipe)
    return recipe


def sections_read(seed: int) -> Recipe:
    recipe = Recipe(
        Reading(402, 4, 24), *texts.sections(), batch=32, steps=240,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.01),
    )  # fmt: skip
    w.warm_cosine(20, 0.1)(recipe)
    return recipe


def letters_glimpsed(seed: int) -> Recipe:
    recipe = Recipe(
        Glimpses(6), *series.letters_drawn(), nn.CrossEntropyLoss(label_smoothing=0.1), batch=48, steps=240,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(25)(recipe)
    return recipe


def rivers_patched(seed: int) -> Recipe:
    return Recipe(
        Patched(36, 12), *series.rivers(), nn.L1Loss(), fit_of, batch=64, steps=200,
        schedule=lambda step: min(1.0, (step + 1) / 20), optimizer=lambda p: torch.optim.RAdam(p, 3e-3),
    )  # fmt: skip


def pages_next(seed: int) -> Recipe:
    return Recipe(
        Visiting(60, 12), *series.visits(), score=mean_loss, batch=48, steps=240,
        schedule=lambda step: min(1.0, (step + 1) / 30),
        optimizer=lambda p: torch.optim.Adam(p, 4e-3, betas=(0.9, 0.98)),
    )  # fmt: skip


TASKS = (
    Task("handbook_written", "transformer", handbook_written, {"bf16": w.bf16},
         (setup.attention_sharp(40.0), silent.skipped(80), setup.oscillating(60.0))),
    Task("dates_rewritten", "transformer", dates_rewritten, {"adamw": w.by("AdamW", 4e-3, weight_decay=0.01)},
         (fourth.rate_of_another(0.1), silent.never_stepped(), second.set_back(120))),
    Task("sections_read", "transformer", sections_read, {"larger_batches": w.batches_of(48)},
         (sagemaker.padded(0.9), silent.stale_optimizer("head"), third.saturated_units("mix", 80))),
    Task("letters_glimpsed", "transformer", letters_glimpsed, {"dropped": w.dropped(0.1)},
         (third.attention_flat(), silent.detached("patch"), sagemaker.raw_pixels(120.0, 60.0))),
    Task("rivers_patched", "transformer", rivers_patched, {"stepped": w.stepped},
         (silent.stuck_loader(50), third.warm_up_for_ever(), silent.other_model())),
    Task("pages_next", "transformer", pages_next, {"adafactor": w.by("Adafactor", 3e-2)},
         (sagemaker.dead_units("feed1", 80), held.rolled_labels(), fifth.unshuffled(25))),
)  # fmt: skip
