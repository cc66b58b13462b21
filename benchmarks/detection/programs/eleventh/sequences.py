"""Recurrent networks and causal convolutions of the eleventh set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, sagemaker, setup, seventh_tables, silent, third
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.eleventh import sequences_data as data
from benchmarks.detection.programs.eleventh.sequences_nets import Pooled, Temporal
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Tags, Yes
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS", "words"]


def words(width: int) -> nn.Embedding:
    """A vector for each word of a review."""
    return nn.Embedding(data.WORDS, width, padding_idx=0)


def reviews_rated(seed: int) -> Recipe:
    x, _, praise, _ = data.reviews(28, 1101, 3200)
    recipe = Recipe(
        Pooled("LSTM", words(16), 16, 1, both=True, drop=0.2), *split(x, praise, seed=1101),
        nn.BCEWithLogitsLoss(), Yes.ranked, batch=48, steps=240, clip=1.0,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def rivers_ahead(seed: int) -> Recipe:
    recipe = Recipe(
        Pooled("GRU", nn.Linear(3, 16), 16, 3, 32, tells="last"), *data.rivers(20, 3, 1102),
        nn.SmoothL1Loss(), fit_of, batch=48, steps=160, clip=1.0,
        optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def reviews_tagged(seed: int) -> Recipe:
    x, *_, tags = data.reviews(24, 1103)
    recipe = Recipe(
        Pooled("GRU", words(16), 16, 3, 32, tells="each", both=True), *split(x, tags, seed=1103),
        Tags(), Tags.score, batch=48, steps=160, clip=5.0,
        optimizer=lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def strokes_named(seed: int) -> Recipe:
    x, kind, _ = data.strokes(8, 24, 1104, 2400, 0.5)
    recipe = Recipe(
        Pooled("LSTM", nn.Linear(2, 16), 16, 8, layers=2, drop=0.1), *split(x, kind, seed=1104), batch=48,
        steps=180, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def strokes_scanned(seed: int) -> Recipe:
    x, kind, _ = data.strokes(10, 32, 1105, 2400, 0.6)
    recipe = Recipe(
        Temporal(2, 10, drop=0.1), *split(x, kind, seed=1105), batch=48, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.05),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def rivers_scanned(seed: int) -> Recipe:
    recipe = Recipe(
        Temporal(3, 2, 16), *data.rivers(24, 2, 1106), nn.MSELoss(), fit_of, batch=64, steps=160,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


TASKS = (
    Task("reviews_rated", "recurrent", reviews_rated, {"adamw": w.by("AdamW", 4e-3, weight_decay=0.05)},
         (third.labels_one_two(), silent.no_zero_grad())),
    Task("rivers_ahead", "recurrent", rivers_ahead, {"larger_batches": w.batches_of(64)},
         (fifth.raw_readings(40.0, 12.0), silent.left_out("rnn"))),
    Task("reviews_tagged", "recurrent", reviews_tagged, {"nadam": w.by("NAdam", 1e-2)},
         (sixth.gates_closed("rnn"), fifth.unshuffled(37))),
    Task("strokes_named", "recurrent", strokes_named, {"adamax": w.by("Adamax", 1.4e-2)},
         (sagemaker.classes_confused(1, 3), fourth.older_loaded(20, 110))),
    Task("strokes_scanned", "convolution", strokes_scanned, {"larger_batches": w.batches_of(64)},
         (sagemaker.dead_units("mix", 60), silent.never_eval())),
    Task("rivers_scanned", "convolution", rivers_scanned,
         {"smaller_batches": w.batches_of(48)},
         (seventh_tables.rate_grows(1.06), setup.constant_output("head"))),
)  # fmt: skip
