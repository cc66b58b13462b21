"""Tables of the ninth set: classes, grades, yes and no, amounts and counts; rare cases, and few rows."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as unread
from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, sagemaker, setup, silent, third
from benchmarks.detection.faults import ninth_tables as ninth
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.eighth.tables_data import as_classes
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fifth.tables import area
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.ninth import tables_data as data
from benchmarks.detection.programs.ninth.tables_nets import (
    Binned,
    Dispersed,
    Experts,
    Graded,
    Residual,
    Spread,
    ranks,
)
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.sequences_nets import counted
from benchmarks.detection.programs.sixth.tables_data import few
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of, mean_loss

__all__ = ["TASKS", "engines_diagnosed", "parcels_sorted"]


def parcels_sorted(seed: int) -> Recipe:
    recipe = Recipe(
        Residual(17, 6, 64, 3), *data.classes(901, 8000, 13, 6, 4), nn.CrossEntropyLoss(label_smoothing=0.05),
        batch=96, steps=180, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.1),
    )  # fmt: skip
    ways.warm_cosine(15)(recipe)
    return recipe


def bookings_kept(seed: int) -> Recipe:
    train, rest = data.chances(902, 6000, 14)
    recipe = Recipe(
        Binned(train[0], 1, (256, 128)), train, rest, nn.BCEWithLogitsLoss(), area, batch=128, steps=180,
        optimizer=lambda p: torch.optim.NAdam(p, 1e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def alerts_triaged(seed: int) -> Recipe:
    recipe = Recipe(
        stack((20, 192, 96, 4), nn.ReLU), *data.classes(903, 6000, 14, 4, 6), batch=96, steps=200,
        optimizer=lambda p: torch.optim.SGD(p, 0.06, momentum=0.9, weight_decay=2e-3),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def films_tagged(seed: int) -> Recipe:
    """Eight tags, each of which a film has or has not; one in three has it."""
    recipe = Recipe(
        Experts(16, 8, 4, 32), *data.chances(904, 4800, 16, outputs=8, share=0.33), nn.BCEWithLogitsLoss(),
        area, batch=64, steps=200, optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip
    ways.warm_cosine(20)(recipe)
    return recipe


def reviews_starred(seed: int) -> Recipe:
    """One to five stars, in their order."""
    recipe = Recipe(
        stack((15, 192, 96, 4), nn.Hardswish, nn.LayerNorm), *data.grades(905, 6000, 12, 5, 3), Graded(),
        ranks, batch=120, steps=180, optimizer=lambda p: torch.optim.NAdam(p, 4e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def engines_diagnosed(seed: int) -> Recipe:
    recipe = Recipe(
        stack((18, 192, 96, 5), nn.ReLU, nn.BatchNorm1d, lambda: nn.Dropout(0.1)),
        *data.classes(906, 6000, 18, 5), batch=120, steps=240,
        optimizer=lambda p: torch.optim.SGD(p, 0.08, momentum=0.9, nesterov=True, weight_decay=1e-3),
    )  # fmt: skip
    ways.stepped(recipe)
    return recipe


def bearings_lasting(seed: int) -> Recipe:
    recipe = Recipe(
        stack((12, 192, 96, 1), nn.Softplus), *data.measures(911, 5000, 12), nn.SmoothL1Loss(beta=0.5),
        fit_of, batch=100, steps=200, clip=2.0, optimizer=lambda p: torch.optim.Adamax(p, 8e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def harvests_spread(seed: int) -> Recipe:
    """How much, and how sure is that?"""
    recipe = Recipe(
        stack((13, 160, 160, 2), nn.GELU), *data.measures(912, 6000, 11, 2, uneven=0.6), Spread(),
        lambda told, wanted: fit_of(told[:, :1], wanted), batch=120, steps=200, clip=5.0,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    ways.warm_cosine(15)(recipe)
    return recipe


def orders_tallied(seed: int) -> Recipe:
    recipe = Recipe(
        Residual(12, 1, 32), *data.counts(913, 3600, 10, 2), Dispersed(), counted, batch=72, steps=180,
        clip=5.0, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def furnaces_steered(seed: int) -> Recipe:
    """Four settings at once."""
    recipe = Recipe(
        stack((14, 192, 96, 4), nn.LeakyReLU, nn.LayerNorm), *data.measures(914, 6000, 14, 0, 4), nn.L1Loss(),
        fit_of, batch=120, steps=200, optimizer=lambda p: torch.optim.RMSprop(p, 2.5e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def refunds_weighed(seed: int) -> Recipe:
    """One row in nine is false, and weighs more for it."""
    train, rest = as_classes(data.chances(921, 4600, 14, share=0.11, sure=8.0, hills=10))
    weight = len(train[1]) / (2 * torch.bincount(train[1]))
    recipe = Recipe(
        stack((14, 64, 32, 2), nn.ELU, drop=lambda: nn.Dropout(0.15)), train, rest,
        nn.CrossEntropyLoss(weight), balanced_accuracy, batch=92, steps=170,
        optimizer=lambda p: torch.optim.NAdam(p, 1.5e-3, weight_decay=1e-3),
    )  # fmt: skip
    ways.warm_cosine(10)(recipe)
    return recipe


def leaks_drawn(seed: int) -> Recipe:
    """One row in ten is a leak; as many of them are drawn as of the others."""
    train, rest = as_classes(data.chances(922, 4600, 11, share=0.1, sure=8.0))
    chance, source = 1 / torch.bincount(train[1])[train[1]], torch.Generator().manual_seed(seed)
    recipe = Recipe(
        stack((11, 64, 32, 2), nn.ReLU, nn.LayerNorm, lambda: nn.Dropout(0.1)), train, rest,
        score=balanced_accuracy, batch=76, steps=170,
        batches=lambda rows: torch.multinomial(chance, len(rows), replacement=True, generator=source),
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.1),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def biopsies_few(seed: int) -> Recipe:
    recipe = Recipe(
        stack((9, 20, 4), nn.GELU, drop=lambda: nn.Dropout(0.2)),
        *few(data.classes(931, 1000, 9, 4, noise=0.2, hills=1), 200), score=mean_loss, batch=25, steps=120,
        eval_every=20, optimizer=lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.1),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def batteries_few(seed: int) -> Recipe:
    recipe = Recipe(
        stack((7, 48, 1), nn.Tanh), *few(data.measures(932, 1000, 7, noise=0.5, hills=1), 120), nn.MSELoss(),
        fit_of, batch=30, steps=140, eval_every=20,
        optimizer=lambda p: torch.optim.SGD(p, 0.04, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


TASKS = (
    Task("parcels_sorted", "dense", parcels_sorted, {"nadam": w.by("NAdam", 3e-3)},
         (unread.softmax_kept("head"), silent.no_zero_grad())),
    Task("bookings_kept", "dense", bookings_kept, {"batches": ways.batches_of(200)},
         (third.labels_one_two(), silent.left_in_eval())),
    Task("alerts_triaged", "dense", alerts_triaged, {"adamw": v.adamw(3e-3, 0.1)},
         (sagemaker.deep_sigmoid(), silent.scaler_stuck())),
    Task("films_tagged", "dense", films_tagged, {"bf16": v.bf16},
         (fifth.raw_columns(), silent.never_stepped())),
    Task("reviews_starred", "dense", reviews_starred, {"momentum": w.by("SGD", 0.1, momentum=0.9)},
         (ninth.betas_swapped(4e-3), silent.detached("3"))),
    Task("engines_diagnosed", "dense", engines_diagnosed, {"dropped": ways.dropped(0.2)},
         (fourth.mostly_dead("5", 0.95, 60), silent.empty_buffer("1"))),
    Task("bearings_lasting", "regression", bearings_lasting, {"one_cycle": ways.one_cycle},
         (fourth.raised(100.0, 90), silent.skipped(60))),
    Task("harvests_spread", "regression", harvests_spread, {"batches": ways.batches_of(80)},
         (sixth.missing_targets(), silent.left_out("2"))),
    Task("orders_tallied", "regression", orders_tallied, {"dropped": ways.dropped(0.2)},
         (fifth.l2_in_adam(3e-3, 1.0), fourth.older_loaded(30, 110))),
    Task("furnaces_steered", "regression", furnaces_steered, {"adam": w.by("Adam", 4e-3)},
         (setup.inputs_constant(90), unread.unshuffled(37))),
    Task("refunds_weighed", "unbalanced", refunds_weighed, {"batches": ways.batches_of(60)},
         (sixth.weights_upside_down(), fifth.normal_weights(2.0))),
    Task("leaks_drawn", "unbalanced", leaks_drawn, {"momentum": w.by("SGD", 0.04, momentum=0.9)},
         (third.all_as_they_come(), third.warm_up_for_ever())),
    Task("biopsies_few", "tiny", biopsies_few, {"batches": ways.batches_of(40)},
         (sagemaker.overfit(30, 500, 0.1), setup.symmetric())),
    Task("batteries_few", "tiny", batteries_few, {"adam": w.by("Adam", 2e-2, weight_decay=1e-3)},
         (sixth.too_long(10), third.saturated_units("0", 80))),
)  # fmt: skip
