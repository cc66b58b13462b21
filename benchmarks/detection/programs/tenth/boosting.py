"""Boosted trees of the tenth set, of XGBoost and of LightGBM."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import held, sagemaker
from benchmarks.detection.faults import ninth_tables as ninth
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.faults import tenth_tables as tenth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import boosting
from benchmarks.detection.programs.eighth.tables_data import as_classes
from benchmarks.detection.programs.fifth.frameworks import DEEP, LEAKED, by_histogram, known, parts
from benchmarks.detection.programs.held import trees
from benchmarks.detection.programs.sixth.boosting import RARE, _column, bagged, regularised, slower
from benchmarks.detection.programs.tenth import tables_data as data
from benchmarks.detection.programs.third import frameworks as third
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def members_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *as_classes(data.flags(1051, 3600, (13, 1, 4), noise=0.5)),
                  by_hand=boosting._boost, steps=110,
                  options={"eta": 0.2, "min_child_weight": 8, "colsample_bynode": 0.6})  # fmt: skip


def calls_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.kinds(1052, 3600, (10, 1, 5), 4, 0.3), by_hand=boosting._boost,
                  steps=70, options={"eta": 0.2, "tree_method": "hist", "max_bin": 128, "min_child_weight": 4,
                                     "alpha": 0.5})  # fmt: skip


def homes_boosted(seed: int) -> Recipe:
    """Small forests are boosted, not single trees."""
    return Recipe(nn.Identity(), *_column(data.amounts(1053, 3000, (11, 0, 5), noise=0.4), torch.float32),
                  by_hand=third._boost_numbers, steps=100,
                  options={"eta": 0.2, "num_parallel_tree": 2, "subsample": 0.7, "colsample_bynode": 0.7,
                           "min_child_weight": 8})  # fmt: skip


def repairs_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *_column(data.costs(1054, 3400, (10, 1, 3)), torch.float32),
                  by_hand=third._boost_numbers, steps=50,
                  options={"objective": "reg:gamma", "eta": 0.12, "min_child_weight": 5, "subsample": 0.8,
                           "base_score": 1.0})  # fmt: skip


def pumps_light(seed: int) -> Recipe:
    """One row in four fails."""
    return Recipe(nn.Identity(), *as_classes(data.flags(1055, 4000, (12, 1, 0), share=0.25, noise=0.4)),
                  by_hand=trees._light, steps=90,
                  options={"num_leaves": 6, "learning_rate": 0.12, "min_data_in_leaf": 40,
                           "path_smooth": 2.0})  # fmt: skip


def shelves_light(seed: int) -> Recipe:
    """Bounds of the branches are drawn by chance, and the best of them taken."""
    return Recipe(nn.Identity(), *data.kinds(1056, 3600, (11, 0, 4), 5, 0.2), by_hand=trees._light, steps=100,
                  options={"extra_trees": True, "num_leaves": 6, "learning_rate": 0.2,
                           "min_data_in_leaf": 20, "lambda_l2": 1.0})  # fmt: skip


TASKS = (
    Task("members_boosted", "boosting", members_boosted, {"by_histogram": by_histogram},
         (known(boosting.leaked, *LEAKED), ninth.boosted_too_fast(2.5))),
    Task("calls_boosted", "boosting", calls_boosted, {"slower": slower},
         (sagemaker.classes_confused(0, 2), known(boosting.too_deep, *DEEP))),
    Task("homes_boosted", "boosting", homes_boosted, {"parts": parts},
         (seventh.numbered_rows(), sixth.rounds_without_end(6))),
    Task("repairs_boosted", "boosting", repairs_boosted, {"regularised": regularised},
         (tenth.leaves_held_down(), sixth.tiny_rounds())),
    Task("pumps_light", "boosting", pumps_light, {"slower": slower},
         (known(trees.rare_class, *RARE), known(trees.deep_light, *DEEP))),
    Task("shelves_light", "boosting", shelves_light, {"bagged": bagged},
         (sagemaker.overfit(60, 300), held.rolled_labels())),
)  # fmt: skip
