"""Boosted trees of the eleventh set, of XGBoost and of LightGBM."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import eleventh_tables as eleventh
from benchmarks.detection.faults import held, sagemaker
from benchmarks.detection.faults import ninth_tables as ninth
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import boosting
from benchmarks.detection.programs.eighth.tables_data import as_classes
from benchmarks.detection.programs.eleventh import tables_data as data
from benchmarks.detection.programs.fifth.frameworks import DEEP, LEAKED, by_histogram, known, parts
from benchmarks.detection.programs.fourth.frameworks import one_side
from benchmarks.detection.programs.held import trees
from benchmarks.detection.programs.sixth.boosting import RARE, _column, bagged, regularised, slower
from benchmarks.detection.programs.third import frameworks as third
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def tenants_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *as_classes(data.yes_no(1151, 3600, (14, 6), noise=0.4)),
                  by_hand=boosting._boost, steps=90,
                  options={"eta": 0.15, "min_child_weight": 6, "gamma": 0.5,
                           "colsample_bylevel": 0.7})  # fmt: skip


def ores_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.kinds(1152, 3600, (12, 4), 4, 0.3), by_hand=boosting._boost, steps=100,
                  options={"eta": 0.25, "min_child_weight": 3, "lambda": 2.0,
                           "colsample_bytree": 0.8})  # fmt: skip


def yields_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *_column(data.amounts(1153, 3200, (13, 5), noise=0.3), torch.float32),
                  by_hand=third._boost_numbers, steps=110,
                  options={"eta": 0.12, "max_depth": 4, "min_child_weight": 10, "lambda": 3.0})  # fmt: skip


def calls_boosted_by_hour(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *_column(data.arrivals(1154, 3600, (11, 7)), torch.float32),
                  by_hand=third._boost_numbers, steps=100,
                  options={"objective": "count:poisson", "eta": 0.15, "max_delta_step": 0.7,
                           "min_child_weight": 6, "subsample": 0.8})  # fmt: skip


def subscribers_light(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *as_classes(data.yes_no(1155, 4000, (13, 8), share=0.35, noise=0.4)),
                  by_hand=trees._light, steps=110,
                  options={"num_leaves": 8, "learning_rate": 0.12, "min_data_in_leaf": 30,
                           "feature_fraction": 0.8})  # fmt: skip


def fruits_light(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.kinds(1156, 3800, (12, 6), 4, 0.2), by_hand=trees._light, steps=110,
                  options={"num_leaves": 7, "learning_rate": 0.15, "min_data_in_leaf": 25, "lambda_l1": 0.5,
                           "feature_fraction_bynode": 0.8})  # fmt: skip


TASKS = (
    Task("tenants_boosted", "boosting", tenants_boosted, {"by_histogram": by_histogram},
         (known(boosting.leaked, *LEAKED), eleventh.few_rows_each())),
    Task("ores_boosted", "boosting", ores_boosted, {"slower": slower},
         (known(trees.rare_class, *RARE), ninth.boosted_too_fast(2.5))),
    Task("yields_boosted", "boosting", yields_boosted, {"parts": parts},
         (known(third.noisy_and_deep, *DEEP), sixth.rounds_without_end(6))),
    Task("calls_boosted_by_hour", "boosting", calls_boosted_by_hour, {"regularised": regularised},
         (sixth.tiny_rounds(), seventh.numbered_rows())),
    Task("subscribers_light", "boosting", subscribers_light, {"one_side": one_side},
         (known(trees.deep_light, *DEEP), held.rolled_labels())),
    Task("fruits_light", "boosting", fruits_light, {"bagged": bagged},
         (sagemaker.overfit(80, 300), sagemaker.classes_confused(1, 2))),
)  # fmt: skip
