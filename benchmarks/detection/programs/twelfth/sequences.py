"""Recurrent networks and parted convolutions of the twelfth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fifth_tables, fourth, held, sagemaker, second, setup, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Tags
from benchmarks.detection.programs.twelfth import sequences_data as data
from benchmarks.detection.programs.twelfth.sequences_nets import Parted, Recalling
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS", "words"]


def words(width: int) -> nn.Embedding:
    """A vector for each word of a command."""
    return nn.Embedding(data.WORDS, width, padding_idx=0)


def commands_understood(seed: int) -> Recipe:
    x, intent, _ = data.commands(16, 1201, 3000)
    recipe = Recipe(
        Recalling("LSTM", words(24), 24, 6, 24, both=True, drop=0.1), *split(x, intent, seed=1201), batch=40,
        steps=260, clip=2.0, optimizer=lambda p: torch.optim.NAdam(p, 5e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def hives_foreseen(seed: int) -> Recipe:
    recipe = Recipe(
        Recalling("GRU", nn.Linear(3, 20), 20, 2, 32, tells="last"), *data.hives(24, 2, 1202), nn.HuberLoss(),
        fit_of, batch=40, steps=220, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 4e-3),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def commands_slotted(seed: int) -> Recipe:
    x, _, tags = data.commands(18, 1203)
    recipe = Recipe(
        Recalling("LSTM", words(16), 16, 4, 20, tells="each", both=True, drop=0.1),
        *split(x, tags, seed=1203), Tags(), Tags.score, batch=32, steps=180, clip=5.0,
        optimizer=lambda p: torch.optim.Adam(p, 8e-3),
    )  # fmt: skip
    w.stepped(recipe)
    return recipe


def lifts_diagnosed(seed: int) -> Recipe:
    recipe = Recipe(
        Recalling("GRU", nn.Linear(3, 16), 16, 6, 32, layers=2, drop=0.1),
        *split(*data.lifts(6, 32, 1204, noise=0.3), seed=1204), batch=48, steps=240, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.05),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def lifts_scanned(seed: int) -> Recipe:
    recipe = Recipe(
        Parted(3, 7, 24, drop=0.05), *split(*data.lifts(7, 48, 1205, 2800, 0.4), seed=1205), batch=40,
        steps=200, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def hives_scanned(seed: int) -> Recipe:
    recipe = Recipe(
        Parted(3, 3, 24, 2, 5), *data.hives(32, 3, 1206), nn.MSELoss(), fit_of, batch=48, steps=200,
        optimizer=lambda p: torch.optim.NAdam(p, 3e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


TASKS = (
    Task("commands_understood", "recurrent", commands_understood, {"larger_batches": w.batches_of(64)},
         (setup.shuffled_labels(), silent.detached("first"))),
    Task("hives_foreseen", "recurrent", hives_foreseen, {"adamax": w.by("Adamax", 8e-3)},
         (fifth.gap_marked(1, 0.1), second.zeroed_before_step())),
    Task("commands_slotted", "recurrent", commands_slotted, {"adamw": w.by("AdamW", 8e-3, weight_decay=0.02)},
         (held.momentum_wild(1.0), fifth.embedding_anew("first"))),
    Task("lifts_diagnosed", "recurrent", lifts_diagnosed, {"adam": w.by("Adam", 5e-3)},
         (sagemaker.overfit(40, 240), fourth.raised(80.0, 90))),
    Task("lifts_scanned", "convolution", lifts_scanned, {"nadam": w.by("NAdam", 3e-3)},
         (held.broken_rows(0.1, 70), silent.left_in_eval())),
    Task("hives_scanned", "convolution", hives_scanned, {"larger_batches": w.batches_of(64)},
         (fifth_tables.clamped_output("head", -0.2, 0.2), fourth.plateau_reversed(8))),
)  # fmt: skip
