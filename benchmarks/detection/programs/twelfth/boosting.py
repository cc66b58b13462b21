"""Boosted trees of the twelfth set, of XGBoost and of LightGBM."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import eighth_tables as eighth
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.faults import tenth_tables as tenth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import boosting
from benchmarks.detection.programs.eighth.tables_data import as_classes
from benchmarks.detection.programs.fifth.frameworks import DEEP, LEAKED, known, parts
from benchmarks.detection.programs.held import trees
from benchmarks.detection.programs.sixth.boosting import RARE, _column, bagged, regularised, slower
from benchmarks.detection.programs.third import frameworks as third
from benchmarks.detection.programs.twelfth import tables_data as data
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def cattle_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *as_classes(data.yes_no(1251, 4400, (12, 5), share=0.4, noise=0.3)),
                  by_hand=boosting._boost, steps=100,
                  options={"eta": 0.12, "max_depth": 4, "min_child_weight": 8, "colsample_bytree": 0.6,
                           "lambda": 2.0})  # fmt: skip


def milk_boosted(seed: int) -> Recipe:
    """What is far off counts by its distance, and bounds are of few bins."""
    return Recipe(nn.Identity(), *_column(data.amounts(1252, 4000, (11, 6, 3), noise=0.25), torch.float32),
                  by_hand=third._boost_numbers, steps=110,
                  options={"objective": "reg:pseudohubererror", "huber_slope": 2.0, "eta": 0.15,
                           "tree_method": "hist", "max_bin": 96, "min_child_weight": 10,
                           "subsample": 0.75})  # fmt: skip


def ferries_light(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.kinds(1253, 4400, (10, 8), 4, 0.15), by_hand=trees._light, steps=100,
                  options={"num_leaves": 9, "learning_rate": 0.1, "min_data_in_leaf": 35, "lambda_l2": 2.0,
                           "feature_fraction": 0.7})  # fmt: skip


def donations_light(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *as_classes(data.yes_no(1254, 4600, (12, 4, 3), share=0.3, noise=0.3)),
                  by_hand=trees._light, steps=100,
                  options={"num_leaves": 6, "learning_rate": 0.13, "min_data_in_leaf": 45, "max_bin": 127,
                           "min_gain_to_split": 0.1, "feature_fraction_bynode": 0.6})  # fmt: skip


TASKS = (
    Task("cattle_boosted", "boosting", cattle_boosted, {"regularised": regularised},
         (known(boosting.too_deep, *DEEP), tenth.columns_mixed())),
    Task("milk_boosted", "boosting", milk_boosted, {"parts": parts},
         (tenth.leaves_held_down(), eighth.coded_by_answer())),
    Task("ferries_light", "boosting", ferries_light, {"slower": slower},
         (known(trees.rare_class, *RARE), known(trees.deep_light, *DEEP))),
    Task("donations_light", "boosting", donations_light, {"bagged": bagged},
         (known(boosting.leaked, *LEAKED), seventh.sorted_labels())),
)  # fmt: skip
