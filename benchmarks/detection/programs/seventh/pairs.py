"""Recommenders, facts, and learning to compare, of the seventh set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, second, silent, third
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth import ways as w
from benchmarks.detection.programs.fifth.sequences_losses import Yes
from benchmarks.detection.programs.seventh import pairs_data as data
from benchmarks.detection.programs.seventh import pairs_nets as nets
from benchmarks.detection.programs.seventh.sequences_data import moves
from benchmarks.detection.programs.sixth.pairs_data import halves, profiles
from benchmarks.detection.programs.sixth.pairs_nets import Walked, curves, faced
from benchmarks.detection.programs.sixth.sequences_data import across
from benchmarks.detection.recipe import Recipe, fit_of, mean_loss, neighbours

__all__ = ["TASKS"]


def dishes_rated(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Met(70, 50), *data.dishes(), nn.HuberLoss(), fit_of, batch=256, steps=280,
        optimizer=lambda p: torch.optim.AdamW(p, 1.5e-2, weight_decay=0.02),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def banners_clicked(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Wide(40, 3, 5), *data.banners(), nn.BCEWithLogitsLoss(), Yes.ranked, batch=256, steps=280,
        optimizer=lambda p: torch.optim.AdamW(p, 1.5e-2, weight_decay=0.05),
    )  # fmt: skip
    w.one_cycle(recipe)
    return recipe


def terms_near(seed: int) -> Recipe:
    return Recipe(
        Walked(92, 12), *data.terms(), nn.BCEWithLogitsLoss(), Yes.ranked, batch=128, steps=200,
        optimizer=lambda p: torch.optim.Adagrad(p, 0.15), schedule=lambda step: 0.99**step,
    )  # fmt: skip


def facts_linked(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Linked(80, 5), *data.facts(), score=mean_loss, batch=128, steps=240,
        optimizer=lambda p: torch.optim.Adam(p, 2e-2),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def movers_known(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Margined(curves(3, 32, 16, 12), 16, 8), *across(moves(8, 3, 32, 725, noise=1.2)), nets.Margin(),
        batch=48, steps=140, optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip
    w.cosine(recipe)
    return recipe


def _dimmed(_recipe: Recipe, _step: int, x: torch.Tensor, y: torch.Tensor):
    """A row twice, each with other numbers hidden and other noise."""
    return torch.cat([x * (torch.rand_like(x) > 0.2) + 0.2 * torch.randn_like(x) for _ in range(2)], 1), y


def profiles_twinned(seed: int) -> Recipe:
    train, (x, y) = profiles(2200, 20, 6)
    recipe = Recipe(
        nets.Twins(20), train, (torch.cat([x, x], 1), y), nets.Twinned(), neighbours, batch=128, steps=180,
        on_batch=[_dimmed], optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.01),
    )  # fmt: skip
    w.warm_cosine(15)(recipe)
    return recipe


def _same(far: torch.Tensor, same: torch.Tensor) -> float:
    """How often two of a kind are nearer than two others."""
    return Yes.ranked(-far, same)


def digits_paired(seed: int) -> Recipe:
    return Recipe(
        nets.Siamese(64), *data.paired(), nets.Apart(), _same, batch=96, steps=220,
        optimizer=lambda p: torch.optim.RMSprop(p, 1e-3), schedule=lambda step: 0.988**step,
    )  # fmt: skip


def sides_matched(seed: int) -> Recipe:
    recipe = Recipe(
        nets.Towers(14), *halves(2600, 14), nets.Chosen(), faced, batch=64, steps=240, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, betas=(0.9, 0.98), weight_decay=0.1),
    )  # fmt: skip
    w.warm_cosine(20)(recipe)
    return recipe


TASKS = (
    Task("dishes_rated", "embedding", dishes_rated, {"nadam": w.by("NAdam", 1.5e-2)},
         (sagemaker.rate_tiny(1e-4), silent.left_out("others"))),
    Task("banners_clicked", "embedding", banners_clicked, {"dropped": w.dropped(0.1)},
         (third.labels_one_two(), silent.left_in_eval())),
    Task("terms_near", "embedding", terms_near, {"larger_batches": w.batches_of(192)},
         (second.redundant_sigmoid("head"), silent.other_model())),
    Task("facts_linked", "embedding", facts_linked, {"larger_batches": w.batches_of(192)},
         (sagemaker.overfit(500, 240), fourth.average_left(100, 0.99))),
    Task("movers_known", "representation", movers_known, {"adamw": w.by("AdamW", 2e-3, weight_decay=0.1)},
         (held.rolled_labels(), silent.empty_buffer("body.1"))),
    Task("profiles_twinned", "representation", profiles_twinned, {"larger_batches": w.batches_of(192)},
         (fourth.without("apart", apart=0.0), silent.no_zero_grad())),
    Task("digits_paired", "representation", digits_paired, {"adam": w.by("Adam", 2e-3)},
         (fourth.without("margin", margin=0.0), fifth.unshuffled(31))),
    Task("sides_matched", "representation", sides_matched, {"nadam": w.by("NAdam", 2e-3)},
         (fifth.other_partners(14), silent.stuck_loader(80))),
)  # fmt: skip
