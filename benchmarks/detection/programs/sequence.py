"""Recurrent networks, transformers, embeddings and recommenders."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import sagemaker, setup, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs import data
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.networks import Factors, Pooled, Reader, Recurrent
from benchmarks.detection.recipe import Recipe, fit_of, mean_loss

__all__ = ["TASKS"]


def waves_gru(seed: int) -> Recipe:
    return Recipe(Recurrent(nn.GRU, 1), *data.waves(), nn.MSELoss(), fit_of, steps=150, clip=1.0)


def marks_lstm(seed: int) -> Recipe:
    return Recipe(
        Recurrent(nn.LSTM, 3, 12), *data.sequences(), steps=180, optimizer=lambda p: torch.optim.Adam(p, 1e-2)
    )


def marks_reader(seed: int) -> Recipe:
    return Recipe(
        Reader(12, 3, 16), *data.sequences(), steps=160, schedule=lambda step: min(1.0, (step + 1) / 40)
    )


def char_reader(seed: int) -> Recipe:
    return Recipe(
        Reader(27, 27, 24, causal=True), *data.text(), score=mean_loss, steps=150, batch=16,
        schedule=lambda step: min(1.0, (step + 1) / 30), clip=1.0,
    )  # fmt: skip


def factors(seed: int) -> Recipe:
    return Recipe(
        Factors(), *data.rated(), nn.MSELoss(), fit_of, steps=180, batch=64,
        optimizer=lambda p: torch.optim.Adam(p, 2e-2),
    )  # fmt: skip


def pooled(seed: int) -> Recipe:
    return Recipe(Pooled(12, 3), *data.sequences(), steps=180)


TASKS = (
    Task("waves_gru", "recurrent", waves_gru,
         {"cosine": v.cosine},
         (sagemaker.rate_tiny(), setup.shuffled_labels(), silent.left_out("head"))),
    Task("marks_lstm", "recurrent", marks_lstm,
         {"clipped": v.clipped},
         (sagemaker.padded(), setup.oscillating(100.0), silent.initialised_again("head", 100))),
    Task("marks_reader", "transformer", marks_reader,
         {"bf16": v.bf16},
         (setup.attention_sharp(), setup.attention_uniform(), setup.oscillating(50.0),
          sagemaker.not_a_number("blocks.0.up"),
          silent.left_out("head"), silent.never_stepped(0.0))),
    Task("char_reader", "transformer", char_reader,
         {"cosine": v.cosine},
         (setup.attention_uniform(), setup.attention_sharp(), setup.oscillating(100.0),
          sagemaker.not_a_number("blocks.1.up"),
          silent.no_zero_grad(), silent.stale_optimizer("head"), silent.never_stepped(0.0))),
    Task("factors", "embedding", factors,
         {"cosine": v.cosine}, (silent.left_out("user"), sagemaker.rate_explodes(), sagemaker.rate_tiny())),
    Task("pooled", "embedding", pooled,
         {"adamw": v.adamw()},
         (sagemaker.padded(), silent.workers_alike(), setup.redundant_softmax("last"))),
)  # fmt: skip
