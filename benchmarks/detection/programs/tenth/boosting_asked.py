"""More boosted trees of the tenth set: leases that end early, scrap, and stock."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from benchmarks.detection.faults import eighth_tables as eighth
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.faults import tenth_tables as tenth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import boosting
from benchmarks.detection.programs.eighth.tables_data import as_classes
from benchmarks.detection.programs.fifth.frameworks import parts
from benchmarks.detection.programs.fourth.frameworks import one_side
from benchmarks.detection.programs.held import trees
from benchmarks.detection.programs.sixth.boosting import _column, slower
from benchmarks.detection.programs.tenth import tables_data as data
from benchmarks.detection.programs.third import frameworks as third
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def leases_boosted(seed: int) -> Recipe:
    """One in five ends early, and weighs four times as much for it."""
    return Recipe(nn.Identity(), *as_classes(data.flags(1061, 4200, (9, 2, 6), share=0.2, noise=0.3)),
                  by_hand=boosting._boost, steps=80,
                  options={"scale_pos_weight": 4.0, "eta": 0.15, "min_child_weight": 15, "max_bin": 64,
                           "gamma": 1.0})  # fmt: skip


def scrap_boosted(seed: int) -> Recipe:
    """Bounds of the branches are proposed anew in each round."""
    return Recipe(nn.Identity(), *_column(data.amounts(1062, 3600, (12, 2, 3), noise=0.5), torch.float32),
                  by_hand=third._boost_numbers, steps=90,
                  options={"tree_method": "approx", "max_bin": 48, "eta": 0.12, "min_child_weight": 12,
                           "subsample": 0.8})  # fmt: skip


def stock_light(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.kinds(1063, 4000, (9, 2, 5), 3, 0.3), by_hand=trees._light, steps=70,
                  options={"num_leaves": 6, "learning_rate": 0.12, "min_data_in_leaf": 30, "max_bin": 63,
                           "feature_fraction_bynode": 0.7, "min_gain_to_split": 0.2})  # fmt: skip


FLAT = ("inputs_constant", "constant_output", "loss_not_decreasing")
"""What is seen of columns that were cut to whole numbers: nearly all are 0, and no branch helps."""
TASKS = (
    Task("leases_boosted", "boosting", leases_boosted, {"slower": slower},
         (tenth.weight_upside_down(), eighth.coded_by_answer())),
    Task("scrap_boosted", "boosting", scrap_boosted, {"parts": parts},
         (seventh.answers_unknown(-999.0, 0.03), seventh.no_splits())),
    Task("stock_light", "boosting", stock_light, {"one_side": one_side},
         (replace(sixth.truncated(), rules=FLAT, causes=()), tenth.columns_mixed())),
)  # fmt: skip
