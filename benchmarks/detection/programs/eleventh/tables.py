"""Tables of the eleventh set: yes and no, kinds, tags, levels, amounts, counts; rare cases, and few rows."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from benchmarks.detection.faults import eleventh_tables as eleventh
from benchmarks.detection.faults import fifth_sequences as unread
from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import sagemaker, second, setup, silent, third
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import data as known
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.eighth.tables_data import as_classes
from benchmarks.detection.programs.eleventh import tables_data as data
from benchmarks.detection.programs.eleventh.tables_nets import Near, Splined, Stretched, Waved, level_of
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fifth.tables import area
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.ninth.tables_nets import Residual
from benchmarks.detection.programs.seventh.nets import Embedded
from benchmarks.detection.programs.sixth.nets import stack
from benchmarks.detection.programs.sixth.sequences_nets import counted
from benchmarks.detection.programs.sixth.tables_data import few
from benchmarks.detection.recipe import Recipe, balanced_accuracy, fit_of, mean_loss

__all__ = ["TASKS", "gestures_posed", "plates_inspected"]


def tenders_won(seed: int) -> Recipe:
    recipe = Recipe(
        Waved(16, stack((80, 160, 80, 1), nn.ReLU, drop=lambda: nn.Dropout(0.1))),
        *data.yes_no(1101, 7200, (16,)), nn.BCEWithLogitsLoss(), area, batch=120, steps=190,
        optimizer=lambda p: torch.optim.Adam(p, 1.5e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def goods_classed(seed: int) -> Recipe:
    """Three kinds of things have 12, 8 and 5 levels."""
    recipe = Recipe(
        Embedded(12, (12, 8, 5), 5, 0.05), *data.kinds(1102, 8000, (12, 12, 8, 5), 5), batch=100, steps=240,
        optimizer=lambda p: torch.optim.AdamW(p, 8e-3, weight_decay=0.02),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def plates_inspected(seed: int) -> Recipe:
    recipe = Recipe(
        stack((17, 224, 112, 6), nn.Hardswish, nn.BatchNorm1d, lambda: nn.Dropout(0.1)),
        *data.kinds(1103, 7600, (17,), 6), batch=95, steps=220,
        optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=5e-4),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def scenes_annotated(seed: int) -> Recipe:
    """Eight tags; one row in five has each."""
    recipe = Recipe(
        Splined((15, 48, 48, 8)), *data.yes_no(1104, 6400, (15,), 8, 0.2), nn.BCEWithLogitsLoss(), area,
        batch=80, steps=180, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.02),
    )  # fmt: skip
    ways.warm_cosine(15)(recipe)
    return recipe


def exams_levelled(seed: int) -> Recipe:
    recipe = Recipe(
        stack((18, 192, 128, 6), nn.ReLU, drop=lambda: nn.Dropout(0.05)), *data.levels(1105, 7000, (18,), 6),
        Near(), level_of, batch=105, steps=200, optimizer=lambda p: torch.optim.NAdam(p, 1.5e-3),
    )  # fmt: skip
    ways.stepped(recipe)
    return recipe


def molecules_binding(seed: int) -> Recipe:
    recipe = Recipe(
        Stretched(22, stack((22, 160, 160, 1), nn.Mish, nn.RMSNorm, lambda: nn.Dropout(0.1))),
        *data.yes_no(1106, 7200, (22,), share=0.4), nn.BCEWithLogitsLoss(), area, batch=100, steps=180,
        optimizer=lambda p: torch.optim.RAdam(p, 1e-2),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def stars_classed(seed: int) -> Recipe:
    recipe = Recipe(
        Residual(14, 4, 96, 2), *data.kinds(1107, 7000, (14,), 4), batch=140, steps=170,
        optimizer=lambda p: torch.optim.AdamW(p, 3e-3, weight_decay=0.05),
    )  # fmt: skip
    ways.warm_cosine(20)(recipe)
    return recipe


def gestures_posed(seed: int) -> Recipe:
    recipe = Recipe(
        stack((20, 256, 128, 64, 7), nn.ReLU), *data.kinds(1108, 8000, (20,), 7), batch=100, steps=220,
        optimizer=lambda p: torch.optim.SGD(p, 0.15, momentum=0.9, weight_decay=1e-4),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def grids_loaded(seed: int) -> Recipe:
    recipe = Recipe(
        stack((18, 256, 128, 1), nn.SiLU), *data.amounts(1111, 7200, (18,)), nn.MSELoss(), fit_of, batch=90,
        steps=240, optimizer=lambda p: torch.optim.Adamax(p, 6e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def stations_visited(seed: int) -> Recipe:
    recipe = Recipe(
        stack((15, 192, 96, 1), nn.GELU, drop=lambda: nn.Dropout(0.05)), *data.arrivals(1112, 6400, (15,)),
        nn.PoissonNLLLoss(), counted, batch=80, steps=180, clip=5.0,
        optimizer=lambda p: torch.optim.Adam(p, 1.5e-3),
    )  # fmt: skip
    ways.warm_cosine(10)(recipe)
    return recipe


def fuels_burnt(seed: int) -> Recipe:
    """Four gases of what is burnt."""
    recipe = Recipe(
        stack((14, 160, 96, 4), nn.Tanh), *data.amounts(1113, 6400, (14,), 4, 0.1), nn.MSELoss(), fit_of,
        batch=96, steps=260, optimizer=lambda p: torch.optim.AdamW(p, 5e-3, weight_decay=0.02),
    )  # fmt: skip
    ways.one_cycle(recipe)
    return recipe


def trips_timed(seed: int) -> Recipe:
    recipe = Recipe(
        stack((16, 192, 192, 1), nn.LeakyReLU, nn.LayerNorm), *data.amounts(1114, 5200, (16,), noise=0.25),
        nn.SmoothL1Loss(beta=0.3), fit_of, batch=65, steps=240,
        optimizer=lambda p: torch.optim.RMSprop(p, 1e-3),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def claims_disputed(seed: int) -> Recipe:
    """One row in ten is a yes, and weighs three times as much."""
    recipe = Recipe(
        stack((17, 192, 96, 1), nn.ReLU, drop=lambda: nn.Dropout(0.1)),
        *data.yes_no(1121, 6800, (17,), share=0.1), nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0)), area,
        batch=136, steps=180, optimizer=lambda p: torch.optim.AdamW(p, 4e-3, weight_decay=0.05),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


def welds_tested(seed: int) -> Recipe:
    """One row in seven is bad; a class weighs the more the fewer it has."""
    train, rest = as_classes(data.yes_no(1122, 6800, (15,), share=0.14))
    counts = torch.bincount(train[1])
    recipe = Recipe(
        stack((15, 160, 80, 2), nn.ELU), train, rest, nn.CrossEntropyLoss(len(train[1]) / (2 * counts)),
        balanced_accuracy, batch=120, steps=180, optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip
    ways.warm_cosine(10)(recipe)
    return recipe


def tumours_few(seed: int) -> Recipe:
    return Recipe(
        stack((30, 24, 2), nn.ReLU, drop=lambda: nn.Dropout(0.2)), *few(known.bunch("breast_cancer"), 140),
        score=mean_loss, batch=20, steps=189, eval_every=21,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.1),
    )  # fmt: skip


def sugars_few(seed: int) -> Recipe:
    recipe = Recipe(
        stack((10, 32, 16, 1), nn.SiLU, drop=lambda: nn.Dropout(0.1)), *known.bunch("diabetes"),
        nn.MSELoss(), fit_of, batch=33, steps=120,
        optimizer=lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.1),
    )  # fmt: skip
    ways.cosine(recipe)
    return recipe


TASKS = (
    Task("tenders_won", "dense", tenders_won, {"batches": ways.batches_of(80)},
         (seventh.sorted_labels(), eleventh.zeroed_each_epoch())),
    Task("goods_classed", "dense", goods_classed, {"dropped": ways.dropped(0.1)},
         (sagemaker.classes_confused(0, 1), silent.left_out("embed.0"))),
    Task("plates_inspected", "dense", plates_inspected, {"adamw": v.adamw(1e-2, 0.05)},
         (fifth.normal_weights(2.0), silent.empty_buffer("1"))),
    Task("scenes_annotated", "dense", scenes_annotated, {"nadam": w.by("NAdam", 3e-3)},
         (fifth.times_hundred(), replace(silent.never_stepped(), trigger=60))),
    Task("exams_levelled", "dense", exams_levelled, {"momentum": w.by("SGD", 0.05, momentum=0.9)},
         (setup.symmetric(), silent.stale_optimizer("3"))),
    Task("molecules_binding", "dense", molecules_binding, {"adam": w.by("Adam", 2e-3)},
         (sagemaker.rate_tiny(1e-4), silent.left_in_eval())),
    Task("stars_classed", "dense", stars_classed, {"bf16": v.bf16},
         (unread.softmax_kept("head"), silent.workers_alike())),
    Task("gestures_posed", "dense", gestures_posed, {"adam": w.by("Adam", 4e-3)},
         (sagemaker.deep_sigmoid(), silent.detached("2"))),
    Task("grids_loaded", "regression", grids_loaded, {"one_cycle": ways.one_cycle},
         (second.one_large_column(2), silent.skipped(70))),
    Task("stations_visited", "regression", stations_visited, {"batches": ways.batches_of(120)},
         (eleventh.counts_not_logarithms(), unread.unshuffled(60))),
    Task("fuels_burnt", "regression", fuels_burnt, {"nadam": w.by("NAdam", 5e-3)},
         (third.saturated_units("2", 70), second.set_back(100))),
    Task("trips_timed", "regression", trips_timed, {"adam": w.by("Adam", 1.5e-3)},
         (setup.oscillating(100.0), silent.scaler_stuck())),
    Task("claims_disputed", "unbalanced", claims_disputed, {"momentum": w.by("SGD", 0.1, momentum=0.9)},
         (third.labels_one_two(), setup.constant_output("6"))),
    Task("welds_tested", "unbalanced", welds_tested, {"batches": ways.batches_of(85)},
         (sixth.weights_upside_down(), silent.initialised_again("2", 120))),
    Task("tumours_few", "tiny", tumours_few, {"batches": ways.batches_of(28)},
         (sagemaker.overfit(30, 500, 0.2), eleventh.spread_of_nothing(4))),
    Task("sugars_few", "tiny", sugars_few, {"momentum": w.by("SGD", 0.02, momentum=0.9)},
         (sixth.too_long(10), silent.never_eval())),
)  # fmt: skip
