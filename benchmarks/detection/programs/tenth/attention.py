"""Transformers of the tenth set, each warmed up."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, sagemaker, setup, silent
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.seventh.attention_nets import Patches
from benchmarks.detection.programs.tenth import sequences_data as data
from benchmarks.detection.programs.tenth.attention_nets import Sharing, Translating
from benchmarks.detection.recipe import Recipe, accuracy, fit_of, mean_loss

__all__ = ["TASKS"]


def formulas_continued(seed: int) -> Recipe:
    symbols = len(data.SYMBOLS)
    recipe = Recipe(
        Sharing(nn.Embedding(symbols, 32), symbols, 24, tells="each", fused=True), *data.formulas(24, 1011),
        score=mean_loss, batch=32, steps=220, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, betas=(0.9, 0.95), weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(20, 0.1)(recipe)
    return recipe


def fabrics_viewed(seed: int) -> Recipe:
    x, kind, _ = data.fabrics(5, 2, 1012, rows=2600)
    recipe = Recipe(
        Sharing(Patches(2, 4, 32), 5, 16, drop=0.1, fused=True), *split(x, kind, seed=1012), batch=48,
        steps=200, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(25)(recipe)
    return recipe


def logs_read(seed: int) -> Recipe:
    x, job, *_ = data.logs(7, 50, 28, 1013)
    recipe = Recipe(
        Sharing(nn.Embedding(51, 32, padding_idx=0), 7, 28, drop=0.1), *split(x, job, seed=1013), batch=48,
        steps=180, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def preys_heeded(seed: int) -> Recipe:
    recipe = Recipe(
        Sharing(nn.Linear(2, 32), 4, 20, depth=2), *data.preys(20, 4, 1014), nn.L1Loss(), fit_of, batch=64,
        steps=220, optimizer=lambda p: torch.optim.Adam(p, 3e-3, betas=(0.9, 0.98)),
    )  # fmt: skip
    w.warm_cosine(25)(recipe)
    return recipe


def postfix_told(seed: int) -> Recipe:
    recipe = Recipe(
        Translating(len(data.SYMBOLS), data.ASKED, data.TOLD, depth=1), *data.postfix(1015), score=accuracy,
        batch=48, steps=220, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, betas=(0.9, 0.98)),
    )  # fmt: skip
    w.warm_cosine(30)(recipe)
    return recipe


def sleep_heeded(seed: int) -> Recipe:
    x, kind, _ = data.sleep(6, 2, 32, 1016)
    recipe = Recipe(
        Sharing(nn.Sequential(nn.Unflatten(1, (8, 4)), nn.Flatten(2), nn.Linear(8, 32)), 6, 8, drop=0.1),
        *split(x, kind, seed=1016), batch=48, steps=200,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


TASKS = (
    Task("formulas_continued", "transformer", formulas_continued, {"larger_batches": w.batches_of(48)},
         (setup.attention_uniform(), silent.workers_alike(4))),
    Task("fabrics_viewed", "transformer", fabrics_viewed, {"nadam": w.by("NAdam", 2e-3)},
         (sagemaker.raw_pixels(), silent.left_in_eval())),
    Task("logs_read", "transformer", logs_read, {"dropped": w.dropped(0.2)},
         (setup.oscillating(40.0), fourth.without_gradient("first"))),
    Task("preys_heeded", "transformer", preys_heeded, {"larger_batches": w.batches_of(96)},
         (sixth.divided_by_nothing(70), silent.initialised_again("head", 180))),
    Task("postfix_told", "transformer", postfix_told, {"nadam": w.by("NAdam", 4e-3)},
         (fifth.softmax_kept("head", 2), silent.skipped(60))),
    Task("sleep_heeded", "transformer", sleep_heeded, {"adamw": w.by("AdamW", 4e-3, weight_decay=0.02)},
         (setup.attention_sharp(40.0), fourth.other_rows())),
)  # fmt: skip
