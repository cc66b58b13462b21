"""Recommenders, walks, and learning to compare, of the sixth set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, sagemaker, second, setup, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Yes
from benchmarks.detection.programs.sixth import pairs_data as data
from benchmarks.detection.programs.sixth import pairs_nets as nets
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.sequences_data import across, systems
from benchmarks.detection.recipe import Recipe, fit_of, neighbours

__all__ = ["TASKS"]


def songs_played(seed: int) -> Recipe:
    return Recipe(
        nets.Biased(80, 60), *data.songs(), nn.MSELoss(), fit_of, batch=128, steps=280,
        optimizer=lambda p: torch.optim.Adam(p, 2e-2), schedule=lambda step: 0.99**step,
    )  # fmt: skip


def carts_filled(seed: int) -> Recipe:
    return Recipe(
        stack((60, 64, 64, 60), nn.ReLU, drop=lambda: nn.Dropout(0.2)), *data.carts(), nets.Bought(),
        nets.bought, batch=64, steps=180, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.02),
        schedule=lambda step: 0.985**step,
    )  # fmt: skip


def walks_followed(seed: int) -> Recipe:
    return Recipe(
        nets.Walked(60, 10), *data.walks(), nn.BCEWithLogitsLoss(), Yes.ranked, batch=128, steps=220,
        optimizer=lambda p: torch.optim.Adagrad(p, 0.1),
    )  # fmt: skip


def offers_taken(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Factors(56), *data.offers(), nn.BCEWithLogitsLoss(), Yes.ranked, batch=128, steps=160,
        optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def walkers_known(seed: int) -> Recipe:
    recipe = Recipe(
        nets.curves(3, 32, 16), *across(systems(6, 3, 32, 635, 2400, 0.5)), nets.Tripled(), neighbours,
        batch=64, steps=160, optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def halves_matched(seed: int) -> Recipe:
    return Recipe(
        nets.Facing(16), *data.halves(), nets.Likeness(), nets.faced, batch=64, steps=240, clip=1.0,
        schedule=lambda step: min(1.0, (step + 1) / 20) * 0.99**step,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip


def tissues_gathered(seed: int) -> Recipe:
    recipe = Recipe(
        stack((24, 48, 48, 12), nn.ReLU), *data.profiles(), nets.Gathering(), neighbours, batch=64, steps=160,
        optimizer=lambda p: torch.optim.Adam(p, 1e-3),
    )  # fmt: skip
    w.stepped(recipe)
    return recipe


def _spoilt(_recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
    """A row, and the same with a third of its numbers those of other rows (SCARF)."""
    other = torch.stack([column[torch.randperm(len(x))] for column in x[:, :16].T], 1)
    return torch.cat([torch.where(torch.rand_like(other) < 0.3, other, x[:, :16]), x[:, 16:]], 1), y


def sensors_faced(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Facing(16, 16, 64), *data.halves(), nets.Likeness(10.0), nets.faced, batch=64, steps=220,
        on_batch=[_spoilt], clip=1.0, optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


TASKS = (
    Task("songs_played", "embedding", songs_played, {"adagrad": w.by("Adagrad", 0.15)},
         (silent.left_out("songs"), third.epsilon_large(2e-2))),
    Task("carts_filled", "embedding", carts_filled, {"larger_batches": w.batches_of(96)},
         (fourth.decay_too_strong(3e-3, 200.0), sagemaker.weights_scaled(0.01, "weights_small"))),
    Task("walks_followed", "embedding", walks_followed, {"adam": w.by("Adam", 1e-2)},
         (second.redundant_sigmoid("head"), silent.stuck_loader(40))),
    Task("offers_taken", "embedding", offers_taken, {"larger_batches": w.batches_of(192)},
         (third.labels_one_two(), fourth.rate_of_another(5.0))),
    Task("walkers_known", "representation", walkers_known, {"larger_batches": w.batches_of(96)},
         (setup.collapsed("7", 30.0), silent.empty_buffer("1"))),
    Task("halves_matched", "representation", halves_matched, {"nadam": w.by("NAdam", 2e-3)},
         (fifth.other_partners(16), fifth.turned_around("sharp", 0.02))),
    Task("tissues_gathered", "representation", tissues_gathered, {"larger_batches": w.batches_of(96)},
         (second.one_large_column(3, 1e4), fourth.average_left(90))),
    Task("sensors_faced", "representation", sensors_faced, {"adamw": w.by("AdamW", 3e-3, weight_decay=0.05)},
         (fifth.zero_start("left.0", "left.2"), second.zeroed_before_step())),
)  # fmt: skip
