"""Boosted trees of the seventh set, of XGBoost and of LightGBM."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import held, sagemaker
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import boosting
from benchmarks.detection.programs.fifth.frameworks import DEEP, LEAKED, known, parts
from benchmarks.detection.programs.held import trees
from benchmarks.detection.programs.seventh import tables_data as data
from benchmarks.detection.programs.sixth.boosting import RARE, _column, bagged, regularised, slower
from benchmarks.detection.programs.third import frameworks as third
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def donors_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *_column(data.likely(781, 3000, 9), torch.long), by_hand=boosting._boost,
                  steps=80, options={"eta": 0.1, "min_child_weight": 8, "subsample": 0.7})  # fmt: skip


def minerals_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.grouped(782, 3000, 12, 5, 1, 1.1), by_hand=boosting._boost, steps=60,
                  options={"eta": 0.2, "max_depth": 2, "colsample_bytree": 0.8})  # fmt: skip


def flats_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *_column(data.smooth(783, 2600, 8, 1, 0.6), torch.float32),
                  by_hand=third._boost_numbers, steps=70,
                  options={"eta": 0.12, "min_child_weight": 5, "subsample": 0.8})  # fmt: skip


def claims_boosted_by_size(seed: int) -> Recipe:
    """The deviance of a gamma distribution: amounts above zero."""
    return Recipe(nn.Identity(), *_column(data.sized(784, 3200, 8), torch.float32),
                  by_hand=third._boost_numbers, steps=60,
                  options={"objective": "reg:gamma", "eta": 0.2, "min_child_weight": 20})  # fmt: skip


def loans_light(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *_column(data.likely(785, 3200, 8, (6, 4)), torch.long),
                  by_hand=trees._light, steps=80,
                  options={"num_leaves": 6, "learning_rate": 0.1, "min_data_in_leaf": 40,
                           "feature_fraction": 0.8})  # fmt: skip


def tickets_light(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.grouped(786, 3400, 14, 4, 2, 1.2), by_hand=trees._light, steps=60,
                  options={"num_leaves": 7, "learning_rate": 0.1, "min_data_in_leaf": 30})  # fmt: skip


TASKS = (
    Task("donors_boosted", "boosting", donors_boosted, {"regularised": regularised},
         (known(boosting.leaked, *LEAKED), known(boosting.too_deep, *DEEP))),
    Task("minerals_boosted", "boosting", minerals_boosted, {"slower": slower},
         (sagemaker.classes_confused(0, 2), known(trees.rare_class, *RARE))),
    Task("flats_boosted", "boosting", flats_boosted, {"parts": parts},
         (known(third.noisy_and_deep, *DEEP), sixth.rounds_without_end(6))),
    Task("claims_boosted_by_size", "boosting", claims_boosted_by_size, {"slower": slower},
         (seventh.numbered_rows(), seventh.no_splits())),
    Task("loans_light", "boosting", loans_light, {"bagged": bagged},
         (known(boosting.leaked, *LEAKED), known(trees.deep_light, *DEEP))),
    Task("tickets_light", "boosting", tickets_light, {"slower": slower},
         (known(trees.rare_class, *RARE), held.rolled_labels())),
)  # fmt: skip
