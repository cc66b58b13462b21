"""Recurrent networks and gated convolutions in time, of the tenth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import sagemaker, second, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Tags
from benchmarks.detection.programs.tenth import sequences_data as data
from benchmarks.detection.programs.tenth.sequences_nets import Stepping, Waved, Weighing
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def sleep_staged(seed: int) -> Recipe:
    x, kind, _ = data.sleep(5, 2, 32, 1001)
    recipe = Recipe(
        Weighing("GRU", nn.Linear(2, 16), 16, 5, both=True, drop=0.1), *split(x, kind, seed=1001), batch=48,
        steps=160, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def preys_foreseen(seed: int) -> Recipe:
    recipe = Recipe(
        Stepping(2, 6), *data.preys(20, 6, 1002), nn.SmoothL1Loss(), fit_of, batch=64, steps=180, clip=1.0,
        optimizer=lambda p: torch.optim.Adam(p, 8e-3),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def logs_sorted(seed: int) -> Recipe:
    x, job, *_ = data.logs(6, 40, 24, 1003)
    recipe = Recipe(
        Weighing("LSTM", nn.Embedding(41, 16, padding_idx=0), 16, 6, drop=0.2), *split(x, job, seed=1003),
        batch=48, steps=180, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def logs_tagged(seed: int) -> Recipe:
    x, _, jobs, _ = data.logs(9, 30, 24, 1004)
    recipe = Recipe(
        Weighing("LSTM", nn.Embedding(31, 16, padding_idx=0), 16, 10, each=True, both=True, drop=0.1),
        *split(x, jobs, seed=1004), Tags(), Tags.score, batch=48, steps=200, clip=5.0,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


def sleep_deepened(seed: int) -> Recipe:
    x, _, deep = data.sleep(3, 2, 48, 1005)
    recipe = Recipe(
        Waved(2, 1), *split(x, deep, seed=1005), nn.MSELoss(), fit_of, batch=48, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def sleep_scanned(seed: int) -> Recipe:
    x, kind, _ = data.sleep(6, 2, 28, 1006)
    recipe = Recipe(
        Waved(2, 6, drop=0.1), *split(x, kind, seed=1006), batch=48, steps=160,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


TASKS = (
    Task("sleep_staged", "recurrent", sleep_staged, {"nadam": w.by("NAdam", 5e-3)},
         (sagemaker.classes_confused(1, 3), silent.no_zero_grad())),
    Task("preys_foreseen", "recurrent", preys_foreseen, {"larger_batches": w.batches_of(96)},
         (fifth.raw_readings(500.0, 120.0), silent.left_out("reader"))),
    Task("logs_sorted", "recurrent", logs_sorted, {"adamax": w.by("Adamax", 1.5e-2)},
         (sagemaker.padded(0.9), fifth.embedding_anew("first"))),
    Task("logs_tagged", "recurrent", logs_tagged, {"nadam": w.by("NAdam", 6e-3)},
         (third.warm_up_for_ever(), fifth.unshuffled(37))),
    Task("sleep_deepened", "convolution", sleep_deepened, {"larger_batches": w.batches_of(64)},
         (second.spread_targets(), silent.empty_buffer("layers.1.norm"))),
    Task("sleep_scanned", "convolution", sleep_scanned, {"dropped": w.dropped(0.2)},
         (setup.constant_output("head"), silent.never_eval())),
)  # fmt: skip
