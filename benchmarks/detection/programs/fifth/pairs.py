"""Recommenders, vectors of words and links, and learning to compare, of the fifth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, silent, third
from benchmarks.detection.program import Fault, Task
from benchmarks.detection.programs.fifth import pairs_data as data
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.pairs_nets import (
    Alike,
    Apart,
    Clicking,
    Contrasted,
    Leading,
    Matched,
    Middle,
    Questions,
    Speakers,
    Verified,
    Views,
    Watching,
    verified,
)
from benchmarks.detection.programs.fifth.sequences_losses import Yes
from benchmarks.detection.programs.fifth.sequences_texts import words_around
from benchmarks.detection.recipe import Recipe, mean_loss, neighbours

__all__ = ["TASKS"]


def films_watched(seed: int) -> Recipe:
    return Recipe(
        Watching(120, 90), *data.films(), nn.BCEWithLogitsLoss(), Yes.ranked, batch=128, steps=240,
        optimizer=lambda p: torch.optim.Adam(p, 8e-3, weight_decay=1e-5),
    )  # fmt: skip


def words_between(seed: int) -> Recipe:
    return Recipe(
        Middle(250), *words_around(), score=mean_loss, batch=96, steps=220,
        optimizer=lambda p: torch.optim.Adagrad(p, 0.15),
    )  # fmt: skip


def adverts_clicked(seed: int) -> Recipe:
    recipe = Recipe(
        Clicking(), *data.adverts(), nn.BCEWithLogitsLoss(), Yes.ranked, batch=128, steps=200,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=1e-2),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def links_followed(seed: int) -> Recipe:
    return Recipe(
        Leading(90, 5), *data.links(), score=mean_loss, batch=128, steps=260,
        optimizer=lambda p: torch.optim.Adam(p, 2e-2), schedule=lambda step: 0.992**step,
    )  # fmt: skip


def _two_views(_recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
    """Moved in time, more or less of it, other noise."""
    views = []
    for _ in range(2):
        moved = x.roll(int(torch.randint(-4, 5, (1,))), 2)
        views.append(moved * (1 + 0.2 * torch.randn(len(x), 1, 1)) + 0.2 * torch.randn_like(x))
    return torch.cat(views), y


def appliances_compared(seed: int) -> Recipe:
    return Recipe(
        Views(), *data.appliances(), Contrasted(), neighbours, batch=64, steps=180, eval_every=1000,
        on_batch=[_two_views], optimizer=lambda p: torch.optim.Adam(p, 2e-3, weight_decay=1e-6),
    )  # fmt: skip


def things_described(seed: int) -> Recipe:
    return Recipe(
        Matched(), *data.described(), Alike(), Alike.score, batch=96, steps=220,
        schedule=lambda step: min(1.0, (step + 1) / 20),
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip


def voices_told(seed: int) -> Recipe:
    recipe = Recipe(
        Speakers(40, 24), *data.voices(), Apart(), batch=72, steps=220,
        optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-4),
    )  # fmt: skip
    w.stepped(recipe)
    return recipe


def questions_paired(seed: int) -> Recipe:
    return Recipe(
        Questions(), *data.questions(), Verified(), verified, batch=64, steps=240,
        optimizer=lambda p: torch.optim.Adam(p, 5e-3),
    )  # fmt: skip


def nothing_apart(recipe: Recipe) -> None:
    """Only pairs that mean the same are given: all codes become one."""
    (x, y), plain = recipe.train, recipe.criterion
    recipe.train, recipe.criterion = (x[y > 0], y[y > 0]), plain


TASKS = (
    Task("films_watched", "embedding", films_watched, {"adamax": w.by("Adamax", 8e-3)},
         (silent.left_out("users"), sagemaker.dead_units("deep.3", 80), second.redundant_sigmoid("head"))),
    Task("words_between", "embedding", words_between, {"adam": w.by("Adam", 1e-2)},
         (fourth.average_left(100), sagemaker.rate_tiny(1e-3), fifth.unshuffled(46))),
    Task("adverts_clicked", "embedding", adverts_clicked, {"clipped": w.clipped(1.0)},
         (second.one_large_column(0, 1e4), silent.left_in_eval(), third.labels_one_two())),
    Task("links_followed", "embedding", links_followed, {"adagrad": w.by("Adagrad", 0.2)},
         (silent.no_zero_grad(), setup.shuffled_labels(), fourth.rate_of_another(5.0))),
    Task("appliances_compared", "representation", appliances_compared, {"larger_batches": w.batches_of(96)},
         (fifth.turned_around("heat", 200.0), silent.detached("encode.0"),
          sagemaker.dead_units("encode.2", 70))),
    Task("things_described", "representation", things_described, {"cosine": w.warm_cosine(20)},
         (fifth.other_partners(12), silent.left_out("text.2"), fourth.same_few(2))),
    Task("voices_told", "representation", voices_told, {"adam": w.by("Adam", 3e-3)},
         (held.rolled_labels(), silent.empty_buffer("body.1"), silent.skipped(70))),
    Task("questions_paired", "representation", questions_paired, {"nadam": w.by("NAdam", 4e-3)},
         (Fault("nothing_apart", nothing_apart, third.COLLAPSED, "setup"),
          fifth.embedding_anew("embed"), fourth.half_overflow("mix", 70))),
)  # fmt: skip
