"""Transformers of the seventh set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import digits
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.seventh import attention_data as data
from benchmarks.detection.programs.seventh import attention_nets as nets
from benchmarks.detection.programs.seventh.sequences_data import promoters, shops, tickets
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of, mean_loss

__all__ = ["TASKS"]


def manual_completed(seed: int) -> Recipe:
    letters = len(data.LETTERS)
    recipe = Recipe(
        nets.Llama(nn.Embedding(letters, 32), letters), *data.manual("preprocessing", 24),
        score=mean_loss, batch=24, steps=160, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, betas=(0.9, 0.95), weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(20, 0.1)(recipe)
    return recipe


def digits_viewed(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Headed(nets.Patches(1, 2, 32), 10, 16, depth=1, drop=0.05, act="relu"), *digits(image=True),
        batch=48, steps=180, optimizer=lambda p: torch.optim.Adam(p, 6e-3, betas=(0.9, 0.98)),
    )  # fmt: skip
    w.warm_cosine(20, 0.02)(recipe)
    return recipe


def scenes_viewed(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Headed(nets.Patches(3, 4, 32), 6, 16), *data.scenes(6, 713, noise=1.6), batch=40, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def tickets_queued(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Sorted(222, 6, 22, drop=0.2), *tickets(6, 220, 22, 714, clear=0.25), batch=48, steps=150,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


def surveys_priced(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Headed(nets.Columns(7, 24), 1, 7, 24, 3, 1, act="relu"), *data.columns(7, 715, 5000),
        nn.MSELoss(), fit_of, batch=96, steps=240,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def promoters_read(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Headed(nets.Scanned(5, 32), 4, 12, heads=2, depth=1, drop=0.1), *promoters(48, 716, 3200),
        batch=64, steps=220, optimizer=lambda p: torch.optim.NAdam(p, 4e-3),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def shops_foreseen(seed: int) -> Recipe:
    return Recipe(
        nets.Llama(nn.Linear(3, 32), 4, heads=2, depth=1, tells="last", drop=0.05), *shops(20, 4, 717),
        nn.HuberLoss(), fit_of, batch=64, steps=160, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 3e-3),
        schedule=lambda step: min(1.0, (step + 1) / 20) * 0.985**step,
    )  # fmt: skip


def packages_told(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Sorted(352, 4, 40, drop=0.3), *data.packages(), score=balanced_accuracy, batch=64, steps=140,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


TASKS = (
    Task("manual_completed", "transformer", manual_completed, {"larger_batches": w.batches_of(32)},
         (third.attention_flat(1e-3), silent.detached("first"))),
    Task("digits_viewed", "transformer", digits_viewed, {"nadam": w.by("NAdam", 4e-3)},
         (fifth.l2_in_adam(3e-3, 1.0), silent.never_eval())),
    Task("scenes_viewed", "transformer", scenes_viewed, {"nadam": w.by("NAdam", 1.5e-3)},
         (fifth.divided_twice(), silent.stale_optimizer("head"))),
    Task("tickets_queued", "transformer", tickets_queued, {"dropped": w.dropped(0.3)},
         (third.warm_up_for_ever(), silent.initialised_again("head", 110))),
    Task("surveys_priced", "transformer", surveys_priced, {"nadam": w.by("NAdam", 3e-3)},
         (second.one_large_column(4, 1e3), silent.skipped(80))),
    Task("promoters_read", "transformer", promoters_read, {"adamw": w.by("AdamW", 4e-3, weight_decay=0.05)},
         (fourth.mostly_dead("first.conv", 0.97, 70), third.sorted_by_class())),
    Task("shops_foreseen", "transformer", shops_foreseen, {"nadam": w.by("NAdam", 3e-3)},
         (setup.attention_sharp(60.0), fourth.same_few(3))),
    Task("packages_told", "transformer", packages_told, {"clipped": w.clipped(0.5)},
         (held.unknown_words(0.96), sagemaker.overfit(120, 200))),
)  # fmt: skip
