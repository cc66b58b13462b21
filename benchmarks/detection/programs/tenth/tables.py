"""Tables of the tenth set: kinds, yes and no, tags, grades, amounts and costs; rare cases, and few rows."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_sequences as unread
from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, held, sagemaker, second, setup, silent, third
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import data as known
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.eighth.tables_data import as_classes
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fifth.tables import area
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.sequences_nets import counted
from benchmarks.detection.programs.sixth.tables_data import few
from benchmarks.detection.programs.tenth import tables_data as data
from benchmarks.detection.programs.tenth.tables_nets import (
    Above,
    Centred,
    Cost,
    Ensemble,
    Factorised,
    LogCosh,
    Selected,
    reached,
)
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of, mean_loss

__all__ = ["TASKS", "calls_routed", "homes_appraised", "plots_mapped", "shelves_assigned"]


def calls_routed(seed: int) -> Recipe:
    recipe = Recipe(
        stack((20, 160, 96, 7), nn.Mish, nn.LayerNorm), *data.kinds(1001, 8000, (12, 1, 6), 7), batch=100,
        steps=200, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def members_renewing(seed: int) -> Recipe:
    recipe = Recipe(
        Factorised(21, 1, 24, 256), *data.flags(1002, 7000, (14, 1, 5), ridges=24), nn.BCEWithLogitsLoss(),
        area, batch=128, steps=180, optimizer=lambda p: torch.optim.Adam(p, 1.5e-3),
    )  # fmt: skip
    ways.warm_cosine(15)(recipe)
    return recipe


def plots_mapped(seed: int) -> Recipe:
    recipe = Recipe(
        stack((18, 256, 128, 6), nn.PReLU, nn.BatchNorm1d, lambda: nn.Dropout(0.1)),
        *data.kinds(1003, 7000, (18, 0, 0), 6), batch=125, steps=210,
        optimizer=lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def shelves_assigned(seed: int) -> Recipe:
    recipe = Recipe(
        stack((16, 256, 192, 5), nn.ReLU, drop=lambda: nn.Dropout(0.05)),
        *data.kinds(1004, 6400, (10, 1, 4), 5), batch=80,
        steps=240, optimizer=lambda p: torch.optim.NAdam(p, 1.5e-3),
    )  # fmt: skip
    ways.stepped(recipe)
    return recipe


def papers_tagged(seed: int) -> Recipe:
    """Six subjects, each of which a paper has or has not; one in four has it."""
    recipe = Recipe(
        Selected(16, 6), *data.flags(1005, 5600, (16, 0, 0), 6, 0.25), nn.BCEWithLogitsLoss(), area, batch=70,
        steps=200, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.02),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def risks_graded(seed: int) -> Recipe:
    recipe = Recipe(
        Ensemble((18, 128, 128, 4)), *data.grades(1006, 6400, (12, 1, 4), 5), Above(), reached, batch=120,
        steps=180, optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    ways.warm_cosine(20)(recipe)
    return recipe


def homes_appraised(seed: int) -> Recipe:
    recipe = Recipe(
        stack((20, 256, 128, 1), nn.GELU), *data.amounts(1011, 7000, (13, 0, 7), ridges=24), nn.HuberLoss(),
        fit_of, batch=150, steps=200, optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def repairs_costed(seed: int) -> Recipe:
    recipe = Recipe(
        stack((17, 224, 112, 1), nn.SiLU, nn.LayerNorm), *data.costs(1012, 6400, (11, 1, 4)), Cost(), counted,
        batch=96, steps=180, clip=2.0, optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def winds_corrected(seed: int) -> Recipe:
    """What a forecast was wrong by, now and then by far."""
    recipe = Recipe(
        stack((18, 256, 128, 1), nn.CELU),
        *data.amounts(1013, 6400, (14, 2, 0), noise=0.15, tails=4, ridges=24), LogCosh(), fit_of, batch=96,
        steps=200, optimizer=lambda p: torch.optim.RMSprop(p, 7e-4),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def mixes_blended(seed: int) -> Recipe:
    """Three properties of what is blended of twelve parts."""
    train, rest = data.amounts(1014, 6000, (12, 0, 0), 3)
    recipe = Recipe(
        Centred(train[0], 3, 160), train, rest, nn.MSELoss(), fit_of, batch=90, steps=200,
        optimizer=lambda p: torch.optim.Adam(p, 4e-3),
    )  # fmt: skip
    ways.stepped(recipe)
    return recipe


def cards_watched(seed: int) -> Recipe:
    """One row in twelve is a theft, and weighs more for it, the softer for the root."""
    recipe = Recipe(
        stack((15, 192, 96, 1), nn.Tanh), *data.flags(1021, 6000, (11, 1, 2), share=0.08, ridges=16),
        nn.BCEWithLogitsLoss(pos_weight=torch.tensor(11.5**0.5)), area, batch=150, steps=180,
        optimizer=lambda p: torch.optim.Adam(p, 1.5e-3),
    )  # fmt: skip
    ways.warm_cosine(10)(recipe)
    return recipe


def pumps_failing(seed: int) -> Recipe:
    """One row in eight is a failure; what a class weighs grows with how few it has (Cui et al., 2019)."""
    train, rest = as_classes(data.flags(1022, 6000, (14, 0, 0), share=0.12))
    weight = 1 / (1 - 0.9998 ** torch.bincount(train[1]))
    recipe = Recipe(
        stack((14, 192, 96, 2), nn.ReLU, drop=lambda: nn.Dropout(0.1)), train, rest,
        nn.CrossEntropyLoss(2 * weight / weight.sum()), balanced_accuracy, batch=120, steps=180,
        optimizer=lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def vineyards_few(seed: int) -> Recipe:
    recipe = Recipe(
        stack((13, 24, 3), nn.SiLU), *known.bunch("wine"), score=mean_loss, batch=19, steps=126,
        eval_every=21, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.1),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def alloys_cast(seed: int) -> Recipe:
    recipe = Recipe(
        stack((8, 32, 16, 1), nn.ReLU, drop=lambda: nn.Dropout(0.05)),
        *few(data.amounts(1032, 1000, (8, 0, 0), noise=0.5, ridges=2), 120), nn.MSELoss(), fit_of, batch=30,
        steps=120, optimizer=lambda p: torch.optim.AdamW(p, 6e-3, weight_decay=0.1),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


TASKS = (
    Task("calls_routed", "dense", calls_routed, {"bf16": v.bf16},
         (fifth.raw_columns(), silent.no_zero_grad())),
    Task("members_renewing", "dense", members_renewing, {"batches": ways.batches_of(80)},
         (third.warm_up_for_ever(), silent.left_out("deep.3"))),
    Task("plots_mapped", "dense", plots_mapped, {"dropped": ways.dropped(0.2)},
         (held.softmax_over_batch("8"), silent.empty_buffer("1"))),
    Task("shelves_assigned", "dense", shelves_assigned, {"momentum": w.by("SGD", 0.05, momentum=0.9)},
         (sagemaker.deep_sigmoid(), silent.workers_alike())),
    Task("papers_tagged", "dense", papers_tagged, {"nadam": w.by("NAdam", 2e-3)},
         (seventh.answers_unknown(), unread.unshuffled(60))),
    Task("risks_graded", "dense", risks_graded, {"adamw": v.adamw(4e-3, 0.05)},
         (fifth.normal_weights(2.0), silent.never_stepped(0.0))),
    Task("homes_appraised", "regression", homes_appraised, {"one_cycle": ways.one_cycle},
         (setup.symmetric(), silent.skipped(60))),
    Task("repairs_costed", "regression", repairs_costed, {"batches": ways.batches_of(150)},
         (second.spread_targets(), fourth.without_gradient("3"))),
    Task("winds_corrected", "regression", winds_corrected, {"adam": w.by("Adam", 2e-3)},
         (sixth.log_of_nothing(3), fourth.older_loaded(30, 120))),
    Task("mixes_blended", "regression", mixes_blended, {"nadam": w.by("NAdam", 2e-3)},
         (setup.oscillating(60.0), silent.initialised_again("mix", 110))),
    Task("cards_watched", "unbalanced", cards_watched, {"momentum": w.by("SGD", 0.1, momentum=0.9)},
         (third.saturated_units("2", 80), silent.scaler_stuck())),
    Task("pumps_failing", "unbalanced", pumps_failing, {"adamw": v.adamw(2e-3, 0.05)},
         (sixth.weights_upside_down(), sagemaker.dead_units("0", 50))),
    Task("vineyards_few", "tiny", vineyards_few, {"batches": ways.batches_of(33)},
         (sagemaker.overfit(30, 500, 0.1), silent.never_stepped())),
    Task("alloys_cast", "tiny", alloys_cast, {"momentum": w.by("SGD", 0.02, momentum=0.9)},
         (sixth.too_long(12), silent.left_in_eval())),
)  # fmt: skip
