"""Transformers of the eleventh set, each warmed up."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.data import split
from benchmarks.detection.programs.eleventh import sequences_data as data
from benchmarks.detection.programs.eleventh.sequences import words
from benchmarks.detection.programs.eleventh.sequences_nets import Glancing, Rotary
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Tags
from benchmarks.detection.programs.seventh.attention_nets import Patches
from benchmarks.detection.programs.tenth.attention_nets import Translating
from benchmarks.detection.recipe import Recipe, accuracy, fit_of, mean_loss

__all__ = ["TASKS"]


def reviews_continued(seed: int) -> Recipe:
    recipe = Recipe(
        Rotary(words(32), data.WORDS, 24, tells="next"), *data.written(24, 1111), score=mean_loss, batch=32,
        steps=260, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, betas=(0.9, 0.95), weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(20, 0.1)(recipe)
    return recipe


def constellations_viewed(seed: int) -> Recipe:
    x, kind, _ = data.constellations(5, 2, 1112, 3200, 0.3)
    recipe = Recipe(
        Glancing(Patches(2, 4, 32), 5, 16, drop=0.1), *split(x, kind, seed=1112), batch=48, steps=240,
        clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(25)(recipe)
    return recipe


def reviews_read(seed: int) -> Recipe:
    x, topic, *_ = data.reviews(28, 1113)
    recipe = Recipe(
        Rotary(words(32), 5, 28, drop=0.1), *split(x, topic, seed=1113), batch=32, steps=200,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def rivers_heeded(seed: int) -> Recipe:
    recipe = Recipe(
        Glancing(nn.Linear(3, 32), 4, 20), *data.rivers(20, 4, 1114), nn.HuberLoss(), fit_of, batch=64,
        steps=200, clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 4e-3, betas=(0.9, 0.98)),
    )  # fmt: skip
    w.warm_cosine(30)(recipe)
    return recipe


def dates_written(seed: int) -> Recipe:
    recipe = Recipe(
        Translating(len(data.SYMBOLS), data.ASKED, data.TOLD, 32, depth=1), *data.dates(1115),
        score=accuracy, batch=64, steps=220, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.01),
    )  # fmt: skip
    w.warm_cosine(30)(recipe)
    return recipe


def _masked(x: torch.Tensor, source: torch.Generator | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Words with a sixth of them masked, and those that are (-100 elsewhere)."""
    hidden = (torch.rand(x.shape, generator=source) < 1 / 6) & (x != 0)
    return x.masked_fill(hidden, data.MASK), x.masked_fill(~hidden, -100)


def reviews_masked(seed: int) -> Recipe:
    """Masked anew in each batch."""
    train, (held_out, _) = data.written(20, 1116)
    recipe = Recipe(
        Rotary(words(32), data.WORDS, 20, tells="each"), train,
        _masked(held_out, torch.Generator().manual_seed(1116)), Tags(),
        lambda told, wanted: accuracy(told.transpose(1, 2)[wanted >= 0], wanted[wanted >= 0]), batch=48,
        steps=200, clip=1.0, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    recipe.on_batch.append(lambda _recipe, _step, x, _y: _masked(x))
    return recipe


TASKS = (
    Task("reviews_continued", "transformer", reviews_continued, {"larger_batches": w.batches_of(48)},
         (setup.attention_sharp(40.0), silent.stuck_loader(70))),
    Task("constellations_viewed", "transformer", constellations_viewed, {"dropped": w.dropped(0.05)},
         (sagemaker.raw_pixels(), silent.left_in_eval())),
    Task("reviews_read", "transformer", reviews_read, {"nadam": w.by("NAdam", 1.5e-3)},
         (held.unknown_words(0.95), fourth.without_gradient("first"))),
    Task("rivers_heeded", "transformer", rivers_heeded, {"larger_batches": w.batches_of(96)},
         (setup.inputs_constant(60), silent.never_stepped())),
    Task("dates_written", "transformer", dates_written, {"nadam": w.by("NAdam", 4e-3)},
         (fifth.softmax_kept("head", 2), fourth.decay_too_strong(5e-3, 100.0))),
    Task("reviews_masked", "transformer", reviews_masked, {"nadam": w.by("NAdam", 3e-3)},
         (third.attention_flat(), silent.workers_alike(4))),
)  # fmt: skip
