"""Tables of the eighth set: classes, yes and no, amounts and counts; rare cases, and few rows."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as unread
from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, second, silent, third
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.eighth import tables_data as data
from benchmarks.detection.programs.eighth.tables_nets import Additive, Largest
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fifth.tables import area
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.sequences_nets import counted
from benchmarks.detection.programs.sixth.tables_data import few
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of, mean_loss

__all__ = ["TASKS"]


def invoices_filed(seed: int) -> Recipe:
    recipe = Recipe(
        stack((19, 96, 48, 7), nn.Mish, nn.BatchNorm1d), *data.sorts(801, 3600, 15, 7, 4), batch=64,
        steps=200, optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.1),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def renewals_won(seed: int) -> Recipe:
    recipe = Recipe(
        stack((16, 64, 32, 1), nn.GELU, nn.LayerNorm, lambda: nn.Dropout(0.1)),
        *data.cases(802, 3600, 12, 4), nn.BCEWithLogitsLoss(), area, batch=60, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 3e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def grapes_named(seed: int) -> Recipe:
    recipe = Recipe(
        stack((12, 72, 72, 5), nn.ReLU), *data.sorts(803, 3200, 12, 5), batch=60, steps=200,
        optimizer=lambda p: torch.optim.SGD(p, 0.08, momentum=0.9, weight_decay=1e-3, nesterov=True),
    )  # fmt: skip
    ways.stepped(recipe)
    return recipe


def visits_coded(seed: int) -> Recipe:
    """Six things that may each be so or not."""
    recipe = Recipe(
        Largest((18, 32, 24, 6), 0.15), *data.cases(804, 3600, 14, 4, 6), nn.BCEWithLogitsLoss(), area,
        batch=72, steps=180, optimizer=lambda p: torch.optim.Adamax(p, 8e-3),
    )  # fmt: skip
    ways.warm_cosine(10)(recipe)
    return recipe


def pumps_rated(seed: int) -> Recipe:
    recipe = Recipe(
        Additive(10, 1), *data.readings(811, 3000, 10, bent=0), nn.MSELoss(), fit_of, batch=64, steps=200,
        optimizer=lambda p: torch.optim.Adam(p, 6e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def tides_read(seed: int) -> Recipe:
    recipe = Recipe(
        stack((11, 64, 64, 3), nn.SiLU, nn.LayerNorm), *data.readings(812, 3200, 11, 0, 3), nn.MSELoss(),
        fit_of, batch=64, steps=200, clip=1.0,
        optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.05),
    )  # fmt: skip
    ways.warm_cosine(20)(recipe)
    return recipe


def queues_counted(seed: int) -> Recipe:
    recipe = Recipe(
        stack((13, 48, 32, 1), nn.ELU), *data.tallies(813, 3200, 10, 3), nn.PoissonNLLLoss(), counted,
        batch=64, steps=200, clip=5.0, optimizer=lambda p: torch.optim.RMSprop(p, 2e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def panels_lit(seed: int) -> Recipe:
    recipe = Recipe(
        stack((9, 64, 64, 32, 1), nn.ReLU), *data.readings(814, 3000, 9, noise=0.35), nn.HuberLoss(), fit_of,
        batch=50, steps=200, optimizer=lambda p: torch.optim.NAdam(p, 3e-3),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def recalls_weighted(seed: int) -> Recipe:
    """One row in ten is a recall, and weighs more for it."""
    train, rest = data.as_classes(data.cases(821, 4400, 13, share=0.1, sure=8.0))
    weight = len(train[1]) / (2 * torch.bincount(train[1]))
    recipe = Recipe(
        stack((13, 56, 28, 2), nn.LeakyReLU, drop=lambda: nn.Dropout(0.15)), train, rest,
        nn.CrossEntropyLoss(weight), balanced_accuracy, batch=88, steps=180,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.1),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def flaws_sampled(seed: int) -> Recipe:
    """One row in twelve is a flaw; as many of them are drawn as of the others."""
    train, rest = data.as_classes(data.cases(822, 4800, 12, share=0.08, sure=8.0))
    chance, source = 1 / torch.bincount(train[1])[train[1]], torch.Generator().manual_seed(seed)
    recipe = Recipe(
        stack((12, 48, 24, 2), nn.ReLU, nn.BatchNorm1d, lambda: nn.Dropout(0.2)), train, rest,
        score=balanced_accuracy, batch=80, steps=160,
        batches=lambda rows: torch.multinomial(chance, len(rows), replacement=True, generator=source),
        optimizer=lambda p: torch.optim.SGD(p, 0.04, momentum=0.9, weight_decay=5e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def assays_few(seed: int) -> Recipe:
    recipe = Recipe(
        stack((8, 24, 3), nn.ReLU, drop=lambda: nn.Dropout(0.2)),
        *few(data.sorts(831, 900, 8, 3, noise=0.2, bent=1), 180), score=mean_loss, batch=30, steps=120,
        eval_every=20, optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.1),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def cores_few(seed: int) -> Recipe:
    recipe = Recipe(
        stack((6, 32, 1), nn.Tanh), *few(data.readings(832, 900, 6, noise=0.35, bent=1), 140), nn.MSELoss(),
        fit_of, batch=32, steps=160, eval_every=20,
        optimizer=lambda p: torch.optim.Adam(p, 2e-2, weight_decay=2e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


TASKS = (
    Task("invoices_filed", "dense", invoices_filed, {"nadam": w.by("NAdam", 5e-3)},
         (unread.softmax_kept("6"), silent.no_zero_grad())),
    Task("renewals_won", "dense", renewals_won, {"batches": ways.batches_of(90)},
         (third.labels_one_two(), silent.skipped(60))),
    Task("grapes_named", "dense", grapes_named, {"adam": w.by("Adam", 4e-3)},
         (sagemaker.deep_sigmoid(), unread.unshuffled(40))),
    Task("visits_coded", "dense", visits_coded, {"dropped": ways.dropped(0.25)},
         (fifth.raw_columns(), silent.left_in_eval())),
    Task("pumps_rated", "regression", pumps_rated, {"rmsprop": w.by("RMSprop", 4e-3)},
         (second.spread_targets(), silent.left_out("bend"))),
    Task("tides_read", "regression", tides_read, {"bf16": v.bf16},
         (fourth.tanh_output("6"), fourth.raised(100.0, 90))),
    Task("queues_counted", "regression", queues_counted, {"batches": ways.batches_of(48)},
         (held.momentum_wild(0.5), fourth.average_left(90))),
    Task("panels_lit", "regression", panels_lit, {"adamw": v.adamw(3e-3, 0.05)},
         (sixth.log_of_nothing(1), silent.detached("2"))),
    Task("recalls_weighted", "unbalanced", recalls_weighted, {"one_cycle": ways.one_cycle},
         (sixth.weights_upside_down(), silent.scaler_stuck())),
    Task("flaws_sampled", "unbalanced", flaws_sampled, {"batches": ways.batches_of(120)},
         (third.all_as_they_come(), fifth.normal_weights(2.0))),
    Task("assays_few", "tiny", assays_few, {"momentum": w.by("SGD", 0.05, momentum=0.9, weight_decay=1e-2)},
         (sagemaker.overfit(30, 500, 0.1), third.empty_weights("0"))),
    Task("cores_few", "tiny", cores_few, {"batches": ways.batches_of(20)},
         (sixth.too_long(10), sagemaker.tanh_saturated(60.0))),
)  # fmt: skip
