"""Transformers of the eighth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, sagemaker, setup, silent
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.eighth import sequences_data as data
from benchmarks.detection.programs.eighth.attention_nets import Fading
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Tags
from benchmarks.detection.programs.seventh.attention_nets import Headed, Patches
from benchmarks.detection.recipe import Recipe, fit_of, mean_loss

__all__ = ["TASKS"]


def fields_viewed(seed: int) -> Recipe:
    recipe = Recipe(
        Headed(Patches(1, 4, 32), 5, 16, drop=0.1), *data.fields(5, 1, 811, noise=0.4), batch=48, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def code_completed(seed: int) -> Recipe:
    letters = len(data.CHARACTERS)
    recipe = Recipe(
        Fading(nn.Embedding(letters, 32), letters, tells="each", causal=True), *data.source("fractions", 24),
        score=mean_loss, batch=32, steps=200, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 8e-3, betas=(0.9, 0.95), weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(20, 0.1)(recipe)
    return recipe


def words_tagged(seed: int) -> Recipe:
    x, tags, _ = data.spoken(7, 100, 18, 813)
    return Recipe(
        Fading(nn.Embedding(102, 32, padding_idx=0), 8, tells="each", drop=0.1, act=nn.ReLU),
        *split(x, torch.where(x > 0, tags, -100), seed=813), Tags(), Tags.score, batch=48, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3, betas=(0.9, 0.98)),
        schedule=lambda step: min(1.0, (step + 1) / 20) * 0.988**step,
    )  # fmt: skip


def hums_heeded(seed: int) -> Recipe:
    x, kind, _ = data.hums(5, 3, 30, 814)
    recipe = Recipe(
        Fading(nn.Linear(3, 32), 5, drop=0.1), *split(x, kind, seed=814), batch=48, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(25)(recipe)
    return recipe


def baskets_priced(seed: int) -> Recipe:
    recipe = Recipe(
        Fading(nn.Embedding(61, 32, padding_idx=0), 1, depth=1), *data.baskets(60, 12, 815), nn.MSELoss(),
        fit_of, batch=96, steps=220, optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.02),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def sugar_heeded(seed: int) -> Recipe:
    recipe = Recipe(
        Fading(nn.Linear(3, 32), 6, tells="last", causal=True, act=nn.SiLU), *data.sugar(20, 6, 816),
        nn.SmoothL1Loss(), fit_of, batch=64, steps=120, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


TASKS = (
    Task("fields_viewed", "transformer", fields_viewed, {"nadam": w.by("NAdam", 3e-3)},
         (sagemaker.raw_pixels(), silent.stale_optimizer("head"))),
    Task("code_completed", "transformer", code_completed, {"larger_batches": w.batches_of(48)},
         (setup.attention_sharp(40.0), fourth.same_few(3))),
    Task("words_tagged", "transformer", words_tagged, {"adamw": w.by("AdamW", 4e-3, weight_decay=0.05)},
         (sagemaker.padded(0.85), silent.never_eval())),
    Task("hums_heeded", "transformer", hums_heeded, {"dropped": w.dropped(0.2)},
         (fourth.ended_early(12), sagemaker.overfit(60, 220, 0.1))),
    Task("baskets_priced", "transformer", baskets_priced, {"adam": w.by("Adam", 4e-3)},
         (setup.constant_output("head"), fourth.older_loaded(20, 150))),
    Task("sugar_heeded", "transformer", sugar_heeded, {"nadam": w.by("NAdam", 2e-3)},
         (fifth.gap_marked(1, 0.2), sixth.divided_by_nothing(70))),
)  # fmt: skip
