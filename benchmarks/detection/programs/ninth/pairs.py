"""Recommenders, words, and learning to compare, of the ninth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences, fourth, held, sagemaker, second, silent
from benchmarks.detection.faults import seventh_tables as unknown
from benchmarks.detection.faults import sixth_tables as longer
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Yes
from benchmarks.detection.programs.ninth import keras_data
from benchmarks.detection.programs.ninth import pairs_data as data
from benchmarks.detection.programs.ninth import pairs_nets as nets
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of, mean_loss, neighbours

__all__ = ["TASKS"]


def podcasts_chosen(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Choosing(120, 80, 16), *data.podcasts(120, 80, 921), score=mean_loss, batch=192, steps=220,
        optimizer=lambda p: torch.optim.Adam(p, 2e-2),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def hotels_booked(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Described(64, 3, 2, nn.ReLU), *data.hotels((40, 20, 4), 922), nn.BCEWithLogitsLoss(), Yes.ranked,
        batch=128, steps=240, optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.05),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def rents_asked(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Described(76, 3, 2, nn.SiLU, drop=0.05), *data.rents((50, 6, 20), 923), nn.MSELoss(), fit_of,
        batch=96, steps=260, optimizer=lambda p: torch.optim.Adam(p, 1e-2),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


def tickets_tagged(seed: int) -> Recipe:
    """The mean of the words' vectors, and a dense layer (fastText); 0 pads."""
    words = nn.EmbeddingBag(301, 24, padding_idx=0)
    recipe = Recipe(
        nn.Sequential(words, nn.Dropout(0.2), nn.Linear(24, 6)), *keras_data.texts(924, 8000, 6, 1.0),
        score=balanced_accuracy, batch=96, steps=180, optimizer=lambda p: torch.optim.Adam(p, 4e-2),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def _heard(_recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
    """A signal twice, each time later or earlier, louder or less, and with other noise."""
    views = []
    for _ in range(2):
        later = torch.roll(x, int(torch.randint(-10, 11, ())), 1)
        loud = 1 + 0.3 * torch.randn(len(x), 1, 1)
        views.append(loud * later + 0.3 * torch.randn_like(x))
    return torch.cat(views, 1), y


def motors_alike(seed: int) -> Recipe:
    train, (x, y) = keras_data.motors(925)
    recipe = Recipe(
        nets.Guessing(2, 48), train, (torch.cat([x, x], 1), y), nets.Guessed(), neighbours, batch=96,
        steps=200, on_batch=[_heard],
        optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=5e-4),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def signatures_matched(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Differing(24), *data.signatures(60, 24, 926, 8000), nn.BCEWithLogitsLoss(), Yes.ranked, batch=80,
        steps=260, optimizer=lambda p: torch.optim.SGD(p, 0.2, momentum=0.9),
    )  # fmt: skip
    w.warm_cosine(10)(recipe)
    return recipe


TASKS = (
    Task("podcasts_chosen", "embedding", podcasts_chosen, {"nadam": w.by("NAdam", 2e-2)},
         (longer.too_long(8), silent.other_model())),
    Task("hotels_booked", "embedding", hotels_booked, {"batches": w.batches_of(96)},
         (unknown.answers_unknown(), fifth_sequences.embedding_anew("kinds"))),
    Task("rents_asked", "embedding", rents_asked, {"rmsprop": w.by("RMSprop", 5e-3)},
         (second.spread_targets(), silent.stale_optimizer("body.8"))),
    Task("tickets_tagged", "embedding", tickets_tagged, {"adagrad": w.by("Adagrad", 0.2)},
         (sagemaker.unbalanced(0.97), silent.scaler_stuck())),
    Task("motors_alike", "representation", motors_alike, {"adam": w.by("Adam", 3e-3)},
         (fourth.without("stop", still=False), silent.left_in_eval())),
    Task("signatures_matched", "representation", signatures_matched, {"batches": w.batches_of(128)},
         (held.momentum_wild(0.3), fourth.older_loaded(20, 140))),
)  # fmt: skip
