"""Recurrent networks, transformers, embeddings and recommenders of the second held-out set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import held, sagemaker, second, setup, silent
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.second import data
from benchmarks.detection.programs.second.networks import (
    Causal,
    Classifier,
    Neighbours,
    Recaller,
    Stacked,
    Tagger,
    Towers,
)
from benchmarks.detection.programs.second.tables import right
from benchmarks.detection.recipe import Recipe, fit_of, mean_loss

__all__ = ["TASKS"]


def chirps_lstm(seed: int) -> Recipe:
    return Recipe(
        Stacked(nn.LSTM, 1, 3, 2, 20), *data.chirps(), batch=40, steps=160, clip=0.5,
        optimizer=lambda p: torch.optim.Adam(p, 1e-2),
    )  # fmt: skip


def predators_plain(seed: int) -> Recipe:
    return Recipe(
        Stacked(nn.RNN, 2, 2, 1, 24), *data.predators(), nn.SmoothL1Loss(), fit_of, steps=150, clip=1.0,
        optimizer=lambda p: torch.optim.RMSprop(p, 1e-3),
    )  # fmt: skip


def tags_gru(seed: int) -> Recipe:
    return Recipe(
        Tagger(8, 3), *data.tags(), batch=30, steps=140,
        optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.01),
    )  # fmt: skip


def reversed_recaller(seed: int) -> Recipe:
    """A warm-up, and then the root of the steps."""
    return Recipe(
        Recaller(8, 8), *data.reversed_rows(), batch=48, steps=200,
        schedule=lambda step: min((step + 1) / 40, (40 / (step + 1)) ** 0.5),
        optimizer=lambda p: torch.optim.Adam(p, 8e-3, betas=(0.9, 0.98)),
    )  # fmt: skip


def chains_classifier(seed: int) -> Recipe:
    return Recipe(
        Classifier(12, 3, 14), *data.chains(), steps=160, clip=1.0,
        schedule=lambda step: min(1.0, (step + 1) / 25),
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.1),
    )  # fmt: skip


def letters_causal(seed: int) -> Recipe:
    return Recipe(
        Causal(), *data.letters(), score=mean_loss, batch=12, steps=170,
        optimizer=lambda p: torch.optim.Adamax(p, 1e-2),
    )  # fmt: skip


def clicks_towers(seed: int) -> Recipe:
    return Recipe(
        Towers(80, 50), *data.clicks(), nn.BCEWithLogitsLoss(), right, batch=64, steps=200,
        optimizer=lambda p: torch.optim.Adam(p, 1e-2),
    )  # fmt: skip


def words_neighbours(seed: int) -> Recipe:
    return Recipe(
        Neighbours(60), *data.words(), nn.BCEWithLogitsLoss(), right, batch=80, steps=200,
        optimizer=lambda p: torch.optim.SparseAdam(p, 2e-2),
    )  # fmt: skip


def rows_adagrad(recipe: Recipe) -> None:
    recipe.optimizer = lambda p: torch.optim.Adagrad(p, 0.1)


TASKS = (
    Task("chirps_lstm", "recurrent", chirps_lstm, {"warm_up": v.warm_up},
         (sagemaker.rate_explodes(1e5), silent.left_out("head"), setup.inputs_constant(60))),
    Task("predators_plain", "recurrent", predators_plain, {},
         (held.momentum_wild(2.0), setup.shuffled_labels())),
    Task("tags_gru", "recurrent", tags_gru, {"cosine": v.cosine},
         (silent.never_stepped(0.0), silent.initialised_again("head", 90))),
    Task("reversed_recaller", "transformer", reversed_recaller, {"bf16": v.bf16},
         (setup.oscillating(60.0), second.set_back(110), silent.workers_alike(4))),
    Task("chains_classifier", "transformer", chains_classifier, {"unclipped_sgd": v.sgd(0.1)},
         (setup.attention_sharp(60.0), held.unknown_words(), silent.stale_optimizer("head"))),
    Task("letters_causal", "convolution", letters_causal, {},
         (silent.left_out("embed"), silent.skipped(70))),
    Task("clicks_towers", "embedding", clicks_towers, {"adagrad": rows_adagrad},
         (silent.left_out("users"), sagemaker.rate_tiny(), held.clipped_away())),
    Task("words_neighbours", "embedding", words_neighbours, {},
         (silent.no_zero_grad(), silent.left_out("context"))),
)  # fmt: skip
