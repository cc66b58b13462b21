"""Transformers of the sixth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, sagemaker, setup, silent, third
from benchmarks.detection.faults import sixth_sequences as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.sixth import attention_data as data
from benchmarks.detection.programs.sixth import sequences_data as series
from benchmarks.detection.programs.sixth.attention_nets import Attentive, Begun, Gathered, Tiles, Windows
from benchmarks.detection.recipe import Recipe, fit_of, mean_loss

__all__ = ["TASKS"]


def manual_written(seed: int) -> Recipe:
    letters = len(data.PRINTED)
    recipe = Recipe(
        Attentive(nn.Embedding(letters, 48), letters, 32, 48, causal=True, tells="classes"), *data.manual(),
        score=mean_loss, batch=24, steps=220, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 5e-3, betas=(0.9, 0.95), weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(30)(recipe)
    return recipe


def sentences_ended(seed: int) -> Recipe:
    recipe = Recipe(
        Attentive(nn.Embedding(41, 32), 41, 16, causal=True, tells="classes", drop=0.05), *series.grammar(),
        score=mean_loss, batch=48, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3, betas=(0.9, 0.98)),
    )  # fmt: skip
    w.warm_cosine(25, 0.05)(recipe)
    return recipe


def modules_named(seed: int) -> Recipe:
    recipe = Recipe(
        Begun(403, 4, 20), *data.modules(), nn.CrossEntropyLoss(label_smoothing=0.05), batch=48, steps=160,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def photos_glimpsed(seed: int) -> Recipe:
    first = nn.Sequential(Tiles(4), nn.Linear(48, 32))
    recipe = Recipe(
        Attentive(first, 2, 16, act=nn.ReLU), *data.photos(), batch=40, steps=200,
        optimizer=lambda p: torch.optim.AdamW(p, 1.5e-3, weight_decay=0.05),
    )  # fmt: skip
    w.warm_cosine(25)(recipe)
    return recipe


def rigs_watched(seed: int) -> Recipe:
    first = nn.Sequential(Windows(4), nn.Linear(16, 32))
    return Recipe(
        Attentive(first, 6, 8, heads=2, drop=0.1), *series.systems(6, 4, 32, 626, noise=1.1), batch=48,
        steps=200, schedule=lambda step: min(1.0, (step + 1) / 20) * 0.985**step,
        optimizer=lambda p: torch.optim.NAdam(p, 3e-3),
    )  # fmt: skip


def rates_onward(seed: int) -> Recipe:
    recipe = Recipe(
        Attentive(nn.Linear(3, 32), 1, 20, heads=2, causal=True, tells="each"),
        *series.seasons(20, 0, (12.0, 30.0), 627, shifted=True), nn.HuberLoss(), fit_of, batch=64, steps=180,
        clip=1.0, compare=lambda told, _x, y: (told[..., 0], y),
        optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.01),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def hidden_right(told: torch.Tensor, wanted: torch.Tensor) -> float:
    """Share of the hidden items that are told rightly."""
    asked = wanted != -100
    return float((told.argmax(1)[asked] == wanted[asked]).float().mean())


def baskets_filled(seed: int) -> Recipe:
    recipe = Recipe(
        Attentive(nn.Embedding(52, 32), 52, 8, depth=1, tells="classes", drop=0.1), *data.baskets(),
        score=hidden_right, batch=64, steps=160, optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


def clouds_shaped(seed: int) -> Recipe:
    recipe = Recipe(
        Gathered(2, 5), *data.clouds(), batch=40, steps=200,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    w.warm_cosine(15, 0.02)(recipe)
    return recipe


TASKS = (
    Task("manual_written", "transformer", manual_written, {"bf16": w.bf16},
         (sixth.mask_inverted(), setup.oscillating(50.0))),
    Task("sentences_ended", "transformer", sentences_ended, {"adamw": w.by("AdamW", 4e-3, weight_decay=0.02)},
         (setup.attention_uniform(), fourth.same_few(3))),
    Task("modules_named", "transformer", modules_named, {"larger_batches": w.batches_of(72)},
         (fifth.embedding_anew("embed"), sagemaker.padded(0.9))),
    Task("photos_glimpsed", "transformer", photos_glimpsed, {"dropped": w.dropped(0.1)},
         (sagemaker.raw_pixels(118.0, 62.0), third.sorted_by_class())),
    Task("rigs_watched", "transformer", rigs_watched, {"bf16": w.bf16},
         (sixth.divided_by_nothing(70), fifth.unshuffled(25))),
    Task("rates_onward", "transformer", rates_onward, {"adafactor": w.by("Adafactor", 3e-2)},
         (fourth.raised(200.0, 80), silent.skipped(70))),
    Task("baskets_filled", "transformer", baskets_filled, {"clipped": w.clipped(1.0)},
         (third.warm_up_for_ever(), setup.attention_sharp(60.0))),
    Task("clouds_shaped", "transformer", clouds_shaped, {"nadam": w.by("NAdam", 3e-3)},
         (sagemaker.dead_units("top.0", 90), fourth.older_loaded(40, 120))),
)  # fmt: skip
