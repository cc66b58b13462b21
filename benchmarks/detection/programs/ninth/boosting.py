"""Boosted trees of the ninth set, of XGBoost and of LightGBM."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import eighth_tables as eighth
from benchmarks.detection.faults import held, sagemaker
from benchmarks.detection.faults import ninth_tables as ninth
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import boosting
from benchmarks.detection.programs.eighth.tables_data import as_classes
from benchmarks.detection.programs.fifth.frameworks import DEEP, LEAKED, by_histogram, known, parts
from benchmarks.detection.programs.held import trees
from benchmarks.detection.programs.ninth import tables_data as data
from benchmarks.detection.programs.sixth.boosting import RARE, _column, bagged, regularised, slower
from benchmarks.detection.programs.third import frameworks as third
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def bookings_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *as_classes(data.chances(951, 3400, 12, 3)), by_hand=boosting._boost,
                  steps=50, options={"eta": 0.25, "min_child_weight": 8, "gamma": 0.2,
                                     "colsample_bylevel": 0.7})  # fmt: skip


def parcels_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.classes(952, 3400, 11, 5, 3), by_hand=boosting._boost, steps=50,
                  options={"eta": 0.2, "tree_method": "hist", "grow_policy": "lossguide", "max_depth": 0,
                           "max_leaves": 8, "min_child_weight": 5})  # fmt: skip


def bearings_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *_column(data.measures(953, 3200, 10, noise=0.5), torch.float32),
                  by_hand=third._boost_numbers, steps=90,
                  options={"eta": 0.12, "min_child_weight": 10, "colsample_bytree": 0.8,
                           "lambda": 3.0})  # fmt: skip


def orders_boosted(seed: int) -> Recipe:
    """Between counts and amounts: a spread that grows with a power of the mean."""
    return Recipe(nn.Identity(), *_column(data.counts(954, 3400, 9, 2), torch.float32),
                  by_hand=third._boost_numbers, steps=60,
                  options={"objective": "reg:tweedie", "tweedie_variance_power": 1.3, "eta": 0.15,
                           "min_child_weight": 20})  # fmt: skip


def refunds_light(seed: int) -> Recipe:
    """Three in ten are false, and the trees are made of rows that are still told wrongly."""
    return Recipe(nn.Identity(), *as_classes(data.chances(955, 4200, 11, share=0.3, sure=8.0)),
                  by_hand=trees._light, steps=70,
                  options={"data_sample_strategy": "goss", "num_leaves": 8, "learning_rate": 0.1,
                           "min_data_in_leaf": 30})  # fmt: skip


def engines_light(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.classes(956, 3600, 13, 4), by_hand=trees._light, steps=70,
                  options={"num_leaves": 6, "max_depth": 4, "learning_rate": 0.12, "min_data_in_leaf": 25,
                           "lambda_l2": 2.0, "feature_fraction": 0.8})  # fmt: skip


TASKS = (
    Task("bookings_boosted", "boosting", bookings_boosted, {"by_histogram": by_histogram},
         (known(boosting.leaked, *LEAKED), ninth.boosted_too_fast(2.5))),
    Task("parcels_boosted", "boosting", parcels_boosted, {"slower": slower},
         (sagemaker.classes_confused(1, 3), known(boosting.too_deep, *DEEP))),
    Task("bearings_boosted", "boosting", bearings_boosted, {"parts": parts},
         (sagemaker.overfit(60, 300), sixth.rounds_without_end(6))),
    Task("orders_boosted", "boosting", orders_boosted, {"regularised": regularised},
         (seventh.no_splits(), sixth.tiny_rounds())),
    Task("refunds_light", "boosting", refunds_light, {"slower": slower},
         (known(trees.rare_class, *RARE), known(trees.deep_light, *DEEP))),
    Task("engines_light", "boosting", engines_light, {"bagged": bagged},
         (eighth.coded_by_answer(), held.rolled_labels())),
)  # fmt: skip
