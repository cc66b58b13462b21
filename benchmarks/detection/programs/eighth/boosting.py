"""Boosted trees of the eighth set, of XGBoost and of LightGBM."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import eighth_tables as eighth
from benchmarks.detection.faults import held, sagemaker
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import boosting
from benchmarks.detection.programs.eighth import tables_data as data
from benchmarks.detection.programs.fifth.frameworks import (
    DEEP,
    LEAKED,
    by_histogram,
    extra_trees,
    known,
    parts,
)
from benchmarks.detection.programs.held import trees
from benchmarks.detection.programs.sixth.boosting import RARE, _column, bagged, regularised, slower
from benchmarks.detection.programs.third import frameworks as third
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def renewals_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.as_classes(data.cases(851, 3200, 11, 4)), by_hand=boosting._boost,
                  steps=60,
                  options={"eta": 0.15, "min_child_weight": 6, "colsample_bytree": 0.7})  # fmt: skip


def grapes_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.sorts(852, 3200, 10, 4), by_hand=boosting._boost, steps=50,
                  options={"eta": 0.2, "max_depth": 3, "min_child_weight": 5, "lambda": 2.0})  # fmt: skip


def pumps_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *_column(data.readings(853, 3000, 9, 3), torch.float32),
                  by_hand=third._boost_numbers, steps=80,
                  options={"max_depth": 3, "eta": 0.12, "min_child_weight": 8, "subsample": 0.7})  # fmt: skip


def queues_boosted(seed: int) -> Recipe:
    """Counts by a likelihood of their own."""
    return Recipe(nn.Identity(), *_column(data.tallies(854, 3200, 9), torch.float32),
                  by_hand=third._boost_numbers, steps=60,
                  options={"objective": "count:poisson", "eta": 0.2, "min_child_weight": 20})  # fmt: skip


def recalls_light(seed: int) -> Recipe:
    """One in seven is a recall, and weighs more for it."""
    return Recipe(nn.Identity(), *data.as_classes(data.cases(855, 4000, 12, share=0.15, sure=6.0)),
                  by_hand=trees._light, steps=60,
                  options={"objective": "multiclassova", "is_unbalance": True, "num_leaves": 7,
                           "learning_rate": 0.1, "min_data_in_leaf": 40})  # fmt: skip


def invoices_light(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.sorts(856, 3600, 12, 5, 3), by_hand=trees._light, steps=60,
                  options={"num_leaves": 8, "learning_rate": 0.1, "min_data_in_leaf": 30,
                           "feature_fraction": 0.7})  # fmt: skip


TASKS = (
    Task("renewals_boosted", "boosting", renewals_boosted, {"by_histogram": by_histogram},
         (eighth.coded_by_answer(), known(boosting.too_deep, *DEEP))),
    Task("grapes_boosted", "boosting", grapes_boosted, {"regularised": regularised},
         (sagemaker.classes_confused(1, 3), sagemaker.overfit(60, 300, 0.2))),
    Task("pumps_boosted", "boosting", pumps_boosted, {"parts": parts},
         (known(third.noisy_and_deep, *DEEP), sixth.rounds_without_end(6))),
    Task("queues_boosted", "boosting", queues_boosted, {"slower": slower},
         (seventh.numbered_rows(), sixth.tiny_rounds())),
    Task("recalls_light", "boosting", recalls_light, {"bagged": bagged},
         (known(trees.deep_light, *DEEP), held.rolled_labels())),
    Task("invoices_light", "boosting", invoices_light, {"extra_trees": extra_trees},
         (known(trees.rare_class, *RARE), known(boosting.leaked, *LEAKED))),
)  # fmt: skip
