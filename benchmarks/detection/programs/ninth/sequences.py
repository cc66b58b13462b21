"""Recurrent networks and inception in time, of the ninth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, sagemaker, setup, silent
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Tags
from benchmarks.detection.programs.ninth import sequences_data as data
from benchmarks.detection.programs.ninth.sequences_nets import Inception, Listening
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def quakes_sorted(seed: int) -> Recipe:
    x, kind, _ = data.quakes(5, 3, 36, 901)
    recipe = Recipe(
        Listening("GRU", nn.Linear(3, 16), 16, 5, 24, both=True, drop=0.1), *split(x, kind, seed=901),
        batch=48, steps=160, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def rides_foreseen(seed: int) -> Recipe:
    recipe = Recipe(
        Listening("LSTM", nn.Linear(4, 16), 16, 6, 32), *data.rides(24, 6, 902), nn.L1Loss(), fit_of,
        batch=64, steps=200, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def addresses_parsed(seed: int) -> Recipe:
    embed = nn.Embedding(len(data.LETTERS), 16, padding_idx=0)
    return Recipe(
        Listening("LSTM", embed, 16, 6, 32, tells="classes", both=True, drop=0.1), *data.addresses(40, 903),
        Tags(), Tags.score, batch=32, steps=160, clip=5.0,
        optimizer=lambda p: torch.optim.Adam(p, 8e-3), schedule=lambda step: 0.985**step,
    )  # fmt: skip


def rivers_followed(seed: int) -> Recipe:
    recipe = Recipe(
        Listening("LSTM", nn.Identity(), 3, 1, 32, tells="each"), *data.catchments(40, 904), nn.MSELoss(),
        fit_of, batch=48, steps=200, clip=1.0, optimizer=lambda p: torch.optim.NAdam(p, 6e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def quakes_distant(seed: int) -> Recipe:
    x, _, far = data.quakes(4, 2, 48, 905)
    recipe = Recipe(
        Inception(nn.Identity(), 2, 1), *split(x, far, seed=905), nn.SmoothL1Loss(), fit_of, batch=48,
        steps=160, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.01),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def proteins_traced(seed: int) -> Recipe:
    recipe = Recipe(
        Inception(nn.Embedding(21, 12), 12, 3, each=True), *data.proteins(48, 906), batch=24, steps=140,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


TASKS = (
    Task("quakes_sorted", "recurrent", quakes_sorted, {"nadam": w.by("NAdam", 8e-3)},
         (sagemaker.classes_confused(1, 3), silent.no_zero_grad())),
    Task("rides_foreseen", "recurrent", rides_foreseen, {"larger_batches": w.batches_of(96)},
         (sixth.stamps_raw(1), silent.never_stepped())),
    Task("addresses_parsed", "recurrent", addresses_parsed, {"adamax": w.by("Adamax", 1.2e-2)},
         (sagemaker.rate_tiny(1e-4), fifth.embedding_anew("first"))),
    Task("rivers_followed", "recurrent", rivers_followed, {"adamw": w.by("AdamW", 6e-3, weight_decay=0.02)},
         (fourth.tanh_output("head"), sagemaker.not_a_number("mix", 70))),
    Task("quakes_distant", "convolution", quakes_distant, {"larger_batches": w.batches_of(64)},
         (setup.oscillating(100.0), seventh.begun_in_eval())),
    Task("proteins_traced", "convolution", proteins_traced, {"nadam": w.by("NAdam", 3e-3)},
         (sagemaker.overfit(30, 240), silent.empty_buffer("layers.1.norm"))),
)  # fmt: skip
