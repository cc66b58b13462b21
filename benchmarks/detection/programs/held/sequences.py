"""Held-out programs on sequences."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import held, sagemaker, setup, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.held import data
from benchmarks.detection.programs.held.networks import Adder, Basket, BracketNet, Counter, Dilated
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def added_gru(seed: int) -> Recipe:
    return Recipe(
        Adder(), *data.added(), nn.MSELoss(), fit_of, steps=300, batch=64, clip=1.0,
        optimizer=lambda p: torch.optim.Adam(p, 1e-2),
    )  # fmt: skip


def brackets_lstm(seed: int) -> Recipe:
    return Recipe(BracketNet(), *data.brackets(), steps=240, optimizer=lambda p: torch.optim.Adam(p, 1e-2))


def counted_encoder(seed: int) -> Recipe:
    return Recipe(
        Counter(6, 4, 12), *data.counted(), steps=160,
        schedule=lambda step: min(1.0, (step + 1) / 40), optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip


def forecast_dilated(seed: int) -> Recipe:
    return Recipe(
        Dilated(),
        *data.forecast(),
        nn.L1Loss(),
        fit_of,
        steps=160,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )


def bags_mish(seed: int) -> Recipe:
    return Recipe(Basket(61, 4), *data.bags(), steps=160, optimizer=lambda p: torch.optim.Adam(p, 1e-2))


TASKS = (
    Task("added_gru", "recurrent", added_gru, {"cosine": v.cosine},
         (setup.oscillating(300.0), setup.shuffled_labels(), silent.left_out("head"),
          held.momentum_wild(1.0))),
    Task("brackets_lstm", "recurrent", brackets_lstm, {"adamw": v.adamw(1e-2)},
         (sagemaker.padded(0.93), held.rolled_labels(), silent.initialised_again("head", 110),
          silent.other_model())),
    Task("counted_encoder", "transformer", counted_encoder, {"bf16": v.bf16},
         (held.unknown_words(), setup.oscillating(100.0), silent.skipped(80), held.clipped_away())),
    Task("forecast_dilated", "convolution", forecast_dilated, {"decayed": v.clipped},
         (sagemaker.dead_units("layers.2", 50), silent.workers_alike(4), silent.scaler_stuck(),
          setup.squashed_output("head"))),
    Task("bags_mish", "embedding", bags_mish, {"sparsely_recorded": v.sparsely_recorded},
         (silent.left_out("bag"), setup.missing_softmax(), sagemaker.rate_tiny(),
          held.unknown_words(0.98, 7))),
)  # fmt: skip
