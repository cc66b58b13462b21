"""Tables of the twelfth set: yes and no, kinds, grades, flags, amounts, counts; and rare cases."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, silent, third
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.eighth.tables_data import as_classes
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fifth.tables import area
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.sequences_nets import counted
from benchmarks.detection.programs.twelfth import tables_data as data
from benchmarks.detection.programs.twelfth.tables_nets import Joined, Mixed, Paired, Squared
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of

__all__ = ["TASKS", "cheeses_judged", "fungi_keyed", "salaries_guessed", "teas_blended"]


def visas_granted(seed: int) -> Recipe:
    recipe = Recipe(
        Joined(17, 1), *data.yes_no(1201, 7600, (17,), share=0.45), nn.BCEWithLogitsLoss(), area, batch=96,
        steps=200, optimizer=lambda p: torch.optim.NAdam(p, 1.5e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def fungi_keyed(seed: int) -> Recipe:
    """Four kinds of things have 9, 7, 6 and 4 levels."""
    recipe = Recipe(
        Mixed(10, (9, 7, 6, 4), 6), *data.kinds(1202, 8400, (10, 9, 7, 6, 4), 6), batch=110, steps=220,
        optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.03),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def cheeses_judged(seed: int) -> Recipe:
    recipe = Recipe(
        stack((16, 200, 100, 5), nn.PReLU, nn.BatchNorm1d, lambda: nn.Dropout(0.15)),
        *data.grades(1203, 7200, (16,), 5), batch=108, steps=200,
        optimizer=lambda p: torch.optim.Adamax(p, 6e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def herbs_flagged(seed: int) -> Recipe:
    """Six flags; three rows in ten have each."""
    recipe = Recipe(
        Paired((14, 96, 64, 6)), *data.yes_no(1204, 6800, (14,), 6, 0.3), nn.BCEWithLogitsLoss(), area,
        batch=85, steps=210, clip=2.0, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    ways.warm_cosine(20)(recipe)
    return recipe


def teas_blended(seed: int) -> Recipe:
    recipe = Recipe(
        stack((18, 240, 120, 6), nn.Softplus, nn.LayerNorm), *data.kinds(1205, 7600, (18,), 6), batch=100,
        steps=220, optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=2e-4),
    )  # fmt: skip
    ways.warm_cosine(15)(recipe)
    return recipe


def passports_checked(seed: int) -> Recipe:
    recipe = Recipe(
        stack((21, 192, 128, 64, 4), nn.ReLU, drop=lambda: nn.Dropout(0.05)),
        *data.kinds(1206, 7000, (21,), 4), batch=125, steps=190,
        optimizer=lambda p: torch.optim.RAdam(p, 4e-3),
    )  # fmt: skip
    ways.stepped(recipe)
    return recipe


def salaries_guessed(seed: int) -> Recipe:
    recipe = Recipe(
        stack((16, 224, 112, 1), nn.Mish, drop=lambda: nn.Dropout(0.05)), *data.amounts(1211, 7600, (16,)),
        nn.HuberLoss(delta=1.5), fit_of, batch=100, steps=220,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.01),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def crowds_counted(seed: int) -> Recipe:
    recipe = Recipe(
        stack((13, 160, 80, 1), nn.ELU), *data.counts(1212, 7000, (13,)), nn.PoissonNLLLoss(), counted,
        batch=105, steps=200, clip=4.0, optimizer=lambda p: torch.optim.RMSprop(p, 7e-4),
    )  # fmt: skip
    ways.warm_cosine(15)(recipe)
    return recipe


def kilns_heated(seed: int) -> Recipe:
    """Three zones of a kiln."""
    recipe = Recipe(
        stack((15, 176, 88, 3), Squared, nn.RMSNorm), *data.amounts(1213, 6800, (15,), 3, 0.1), nn.MSELoss(),
        fit_of, batch=85, steps=220, optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def yarns_stretched(seed: int) -> Recipe:
    """Two small batches make a step."""
    recipe = Recipe(
        stack((14, 192, 128, 1), nn.SELU), *data.amounts(1214, 8000, (14,), noise=0.15), nn.MSELoss(),
        fit_of, batch=60, accumulate=2, steps=170, optimizer=lambda p: torch.optim.NAdam(p, 1.5e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def parcels_lost(seed: int) -> Recipe:
    """One row in ten is a yes, and is drawn as often as a no."""
    train, rest = as_classes(data.yes_no(1221, 8000, (16,), share=0.1, noise=0.1))
    chance, source = 1.0 / torch.bincount(train[1])[train[1]], torch.Generator().manual_seed(seed)
    recipe = Recipe(
        stack((16, 128, 64, 2), nn.LeakyReLU, drop=lambda: nn.Dropout(0.2)), train, rest,
        score=balanced_accuracy, batch=128, steps=170,
        batches=lambda rows: torch.multinomial(chance, len(rows), replacement=True, generator=source),
        optimizer=lambda p: torch.optim.AdamW(p, 1.5e-3, weight_decay=0.1),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def calves_sick(seed: int) -> Recipe:
    """One row in eight is a yes, and weighs three times as much."""
    recipe = Recipe(
        stack((14, 144, 72, 1), nn.CELU, drop=lambda: nn.Dropout(0.1)),
        *data.yes_no(1222, 7600, (14,), share=0.125), nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0)),
        area, batch=114, steps=180, optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip
    ways.warm_cosine(10)(recipe)
    return recipe


TASKS = (
    Task("visas_granted", "dense", visas_granted, {"adamw": v.adamw(3e-3, 0.02)},
         (third.softmax_of_one("head"), silent.no_zero_grad())),
    Task("fungi_keyed", "dense", fungi_keyed, {"batches": ways.batches_of(80)},
         (fourth.plateau_reversed(), fourth.older_loaded(30, 150))),
    Task("cheeses_judged", "dense", cheeses_judged, {"momentum": w.by("SGD", 0.08, momentum=0.9)},
         (setup.redundant_softmax("8"), silent.never_eval())),
    Task("herbs_flagged", "dense", herbs_flagged, {"bf16": v.bf16},
         (seventh.answers_unknown(), fourth.without_gradient("lines.0"))),
    Task("teas_blended", "dense", teas_blended, {"adam": w.by("Adam", 3e-3)},
         (held.momentum_wild(1.0), silent.stuck_loader(70))),
    Task("passports_checked", "dense", passports_checked, {"dropped": ways.dropped(0.15)},
         (sagemaker.dead_units("3", 90), fifth.own_logarithm(150.0))),
    Task("salaries_guessed", "regression", salaries_guessed, {"nadam": w.by("NAdam", 1.5e-3)},
         (fifth.in_raw_units(), silent.other_model())),
    Task("crowds_counted", "regression", crowds_counted, {"adam": w.by("Adam", 1.5e-3)},
         (third.shrunk_inputs(), silent.initialised_again("2", 120))),
    Task("kilns_heated", "regression", kilns_heated, {"batches": ways.batches_of(120)},
         (fourth.tanh_output("6"), fourth.nan_gradient("3", 60))),
    Task("yarns_stretched", "regression", yarns_stretched, {"momentum": w.by("SGD", 0.02, momentum=0.9)},
         (second.spread_targets(), third.discarded_batches())),
    Task("parcels_lost", "unbalanced", parcels_lost, {"momentum": w.by("SGD", 0.05, momentum=0.9)},
         (third.all_as_they_come(), second.zeroed_before_step())),
    Task("calves_sick", "unbalanced", calves_sick, {"adamw": v.adamw(3e-3, 0.05)},
         (seventh.uphill(), held.broken_rows(0.1, 60))),
)  # fmt: skip
