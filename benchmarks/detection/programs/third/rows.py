"""Recurrent networks, transformers, embeddings and recommenders of the third held-out set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import held, sagemaker, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.second.tables import balanced, right
from benchmarks.detection.programs.third import data
from benchmarks.detection.programs.third import ways as w
from benchmarks.detection.programs.third.networks import Circles
from benchmarks.detection.programs.third.readers import (
    Beating,
    Fields,
    Follower,
    Lines,
    Looking,
    Onward,
    Preferring,
    Reading,
    Sorter,
)
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def lines_read(seed: int) -> Recipe:
    """A plain recurrent net whose gradient is clipped in every step."""
    return Recipe(
        Lines(nn.RNN, 8, 10), *data.rows_of_digits(), batch=40, steps=200, clip=0.1,
        optimizer=lambda p: torch.optim.RMSprop(p, 2e-3, momentum=0.5),
    )  # fmt: skip


def butterfly_onward(seed: int) -> Recipe:
    return Recipe(
        Onward(), *data.lorenz(), nn.MSELoss(), fit_of, batch=50, steps=150,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=1e-3),
    )  # fmt: skip


def beats_told(seed: int) -> Recipe:
    """One in twelve is what is looked for, and weighs eleven times."""
    return Recipe(
        Beating(), *data.beats(), nn.BCEWithLogitsLoss(pos_weight=torch.tensor([11.0])), balanced, batch=64,
        steps=150, optimizer=lambda p: torch.optim.Adam(p, 8e-3),
    )  # fmt: skip


def pieces_of_text(seed: int) -> Recipe:
    return Recipe(
        Reading(30, 3), *data.descriptions(), batch=50, steps=160,
        optimizer=lambda p: torch.optim.Adamax(p, 8e-3),
    )  # fmt: skip


def tokens_sorted(seed: int) -> Recipe:
    """Up in a line for twenty steps, and then down in a line."""
    return Recipe(
        Sorter(12, 8), *data.sorted_rows(), batch=40, steps=200,
        schedule=lambda step: min((step + 1) / 20, (200 - step) / 180),
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, betas=(0.9, 0.95), weight_decay=0.1),
    )  # fmt: skip


def keys_looked_up(seed: int) -> Recipe:
    """To find a value by its key: nothing falls until attention has found how."""
    return Recipe(
        Looking(48, 5, 6, depth=1), *data.blocks(), batch=64, steps=220, clip=1.0,
        schedule=lambda step: min(1.0, (step + 1) / 30),
        optimizer=lambda p: torch.optim.Adam(p, 4e-3, betas=(0.9, 0.98)),
    )  # fmt: skip


def next_visit(seed: int) -> Recipe:
    """Items are read and told by the same vectors."""
    return Recipe(
        Follower(40), *data.sessions(), batch=64, steps=180,
        optimizer=lambda p: torch.optim.Adagrad(p, 0.08),
    )  # fmt: skip


def clicked_fields(seed: int) -> Recipe:
    return Recipe(
        Fields(73), *data.clicks_by_field(), nn.BCEWithLogitsLoss(pos_weight=torch.tensor([5.0])), balanced,
        batch=100, steps=180, optimizer=lambda p: torch.optim.Adam(p, 1e-2),
    )  # fmt: skip


class _Preferred(nn.Module):
    """Minus the log-likelihood that what was taken is preferred (BPR)."""

    def forward(self, told: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return nn.functional.softplus(-told).mean()


def preferred_items(seed: int) -> Recipe:
    return Recipe(
        Preferring(90, 60), *data.ranked(), _Preferred(), right, batch=128, steps=200,
        optimizer=lambda p: torch.optim.Adam(p, 1e-2, weight_decay=1e-5),
    )  # fmt: skip


def circles_of_friends(seed: int) -> Recipe:
    """A graph, all of it in each step, with half of what is known dropped."""
    (train, test), known, whom = data.community()
    return Recipe(
        Circles(known, whom, 4), train, test, batch=192, steps=130,
        optimizer=lambda p: torch.optim.Adam(p, 1e-2, weight_decay=5e-4),
    )  # fmt: skip


def frozen_vectors(recipe: Recipe) -> None:
    """Vectors of letters are left as they were drawn."""
    recipe.model.embed.weight.requires_grad_(False)


def long_warm_up(recipe: Recipe) -> None:
    recipe.schedule = lambda step: min(1.0, (step + 1) / 100)


def by_sgd(recipe: Recipe) -> None:
    recipe.optimizer = lambda p: torch.optim.SGD(p, 0.5, momentum=0.9)


TASKS = (
    Task("lines_read", "recurrent", lines_read, {"ramped": w.ramped},
         (sagemaker.rate_explodes(3e4), silent.left_out("rnn"), silent.never_eval())),
    Task("butterfly_onward", "recurrent", butterfly_onward, {"long_warm_up": long_warm_up},
         (silent.initialised_again("mix", 90), setup.inputs_constant(60), setup.oscillating(250.0))),
    Task("beats_told", "convolution", beats_told, {"wsd": w.wsd},
         (silent.empty_buffer("layers.0.0"), third.labels_one_two(), silent.stuck_loader(70))),
    Task("pieces_of_text", "embedding", pieces_of_text, {"frozen_vectors": frozen_vectors},
         (sagemaker.padded(0.9), sagemaker.dead_units("wide", 50), setup.redundant_softmax("head"))),
    Task("tokens_sorted", "transformer", tokens_sorted, {},
         (setup.attention_sharp(60.0), silent.never_stepped(0.0))),
    Task("keys_looked_up", "transformer", keys_looked_up, {},
         (third.attention_flat(), silent.no_zero_grad())),
    Task("next_visit", "embedding", next_visit, {},
         (held.unknown_words(0.97, 3), silent.other_model())),
    Task("clicked_fields", "embedding", clicked_fields, {"adafactor": w.adafactor(3e-2)},
         (silent.left_out("vectors"), third.epsilon_large(1e-2, 1e3), silent.workers_alike(3))),
    Task("preferred_items", "embedding", preferred_items, {"lookahead": w.lookahead},
         (silent.stuck_loader(50), sagemaker.rate_tiny())),
    Task("circles_of_friends", "graph", circles_of_friends, {"by_sgd": by_sgd},
         (silent.never_eval(), setup.missing_softmax(), setup.decay_kills(3.0))),
)  # fmt: skip
