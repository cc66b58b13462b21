"""Transformers of the ninth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, setup, silent
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.eighth.attention_nets import Fading
from benchmarks.detection.programs.eighth.sequences_data import CHARACTERS, source
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.ninth import sequences_data as data
from benchmarks.detection.programs.ninth.attention_nets import Encoded, Leaning
from benchmarks.detection.programs.seventh.attention_nets import Patches
from benchmarks.detection.recipe import Recipe, mean_loss

__all__ = ["TASKS"]


def sums_told(seed: int) -> Recipe:
    recipe = Recipe(
        Leaning(nn.Embedding(101, 48), 10, 5, 48), *data.sums(5, 911), batch=64, steps=280,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, betas=(0.9, 0.98), weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def trips_onward(seed: int) -> Recipe:
    recipe = Recipe(
        Leaning(nn.Embedding(31, 32), 31, 16, drop=0.05), *data.trips(30, 16, 912), score=mean_loss, batch=48,
        steps=200, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(20, 0.1)(recipe)
    return recipe


def proteins_folded(seed: int) -> Recipe:
    recipe = Recipe(
        Leaning(nn.Embedding(21, 32, padding_idx=0), 3, 40, causal=False, drop=0.1), *data.proteins(40, 913),
        batch=32, steps=260, optimizer=lambda p: torch.optim.Adam(p, 8e-3, betas=(0.9, 0.98)),
    )  # fmt: skip
    w.warm_cosine(30)(recipe)
    return recipe


def cells_viewed(seed: int) -> Recipe:
    recipe = Recipe(
        Encoded(Patches(2, 4, 32), 5, 16, act="gelu"), *data.cells(5, 2, 914), batch=48, steps=200,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(25)(recipe)
    return recipe


def reports_sorted(seed: int) -> Recipe:
    x, kind, _ = data.reports(6, 150, 24, 915)
    recipe = Recipe(
        Encoded(nn.Embedding(152, 32, padding_idx=0), 6, 24, depth=1, drop=0.2), *split(x, kind, seed=915),
        batch=48, steps=160, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def code_continued(seed: int) -> Recipe:
    letters = len(CHARACTERS)
    recipe = Recipe(
        Fading(nn.Embedding(letters, 40), letters, 40, tells="each", causal=True, act=nn.SiLU),
        *source("textwrap", 28), score=mean_loss, batch=32, steps=200, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, betas=(0.9, 0.95), weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(15, 0.1)(recipe)
    return recipe


TASKS = (
    Task("sums_told", "transformer", sums_told, {"larger_batches": w.batches_of(96)},
         (sixth.mask_inverted(), fourth.other_rows())),
    Task("trips_onward", "transformer", trips_onward, {"nadam": w.by("NAdam", 5e-3)},
         (setup.attention_sharp(40.0), fifth.unshuffled(31))),
    Task("proteins_folded", "transformer", proteins_folded, {"dropped": w.dropped(0.2)},
         (setup.constant_output("head"), silent.initialised_again("head", 220))),
    Task("cells_viewed", "transformer", cells_viewed, {"nadam": w.by("NAdam", 2e-3)},
         (sagemaker.raw_pixels(), sagemaker.weights_scaled(20.0, "weights_large"))),
    Task("reports_sorted", "transformer", reports_sorted, {"adamw": w.by("AdamW", 4e-3, weight_decay=0.01)},
         (held.unknown_words(0.95), silent.left_in_eval())),
    Task("code_continued", "transformer", code_continued, {"larger_batches": w.batches_of(48)},
         (setup.attention_uniform(), silent.workers_alike(4))),
)  # fmt: skip
