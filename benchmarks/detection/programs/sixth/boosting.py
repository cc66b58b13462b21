"""Boosted trees of the sixth set, of XGBoost and of LightGBM."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import held, sagemaker
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs import boosting
from benchmarks.detection.programs.fifth.frameworks import DEEP, LEAKED, by_histogram, known
from benchmarks.detection.programs.held import trees
from benchmarks.detection.programs.sixth import tables_data as data
from benchmarks.detection.programs.third import frameworks as third
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]

RARE = ("class_imbalance", "confusion")


def _column(found: data.Split, dtype: torch.dtype) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The only column of the answers, as a row of them."""
    return [(x, y[:, 0].to(dtype)) for x, y in found]


def claims_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *_column(data.chances(701, 3000, 12, 4), torch.long),
                  by_hand=boosting._boost, steps=50, options={"eta": 0.1, "colsample_bytree": 0.7,
                                                              "min_child_weight": 5})  # fmt: skip


def crops_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.classes(702, 2600, 9, 4, 5, 0.15), by_hand=boosting._boost, steps=30,
                  options={"max_depth": 3, "eta": 0.2, "min_child_weight": 4, "lambda": 4.0})  # fmt: skip


def plant_boosted(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *_column(data.plant(), torch.float32),
                  by_hand=third._boost_numbers, steps=50,
                  options={"max_depth": 3, "eta": 0.12, "min_child_weight": 5})  # fmt: skip


def freight_boosted(seed: int) -> Recipe:
    """What is far off counts by its distance."""
    return Recipe(nn.Identity(), *_column(data.amounts(703, 2800, 10, 4), torch.float32),
                  by_hand=third._boost_numbers, steps=60,
                  options={"objective": "reg:pseudohubererror", "max_depth": 3, "eta": 0.15,
                           "subsample": 0.7, "min_child_weight": 10})  # fmt: skip


def voters_light(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.classes(704, 2800, 12, 5, 3), by_hand=trees._light, steps=45,
                  options={"num_leaves": 5, "learning_rate": 0.1, "min_data_in_leaf": 40})  # fmt: skip


def parcels_light(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *_column(data.chances(705, 3200, 10, 3, share=0.4), torch.long),
                  by_hand=trees._light, steps=50,
                  options={"num_leaves": 6, "learning_rate": 0.1, "feature_fraction": 0.7,
                           "min_data_in_leaf": 30})  # fmt: skip


def slower(recipe: Recipe) -> None:
    """Half the rate, and half as many rounds again."""
    name = "eta" if "eta" in recipe.options else "learning_rate"
    recipe.options |= {name: 0.6 * recipe.options[name]}
    recipe.steps = int(1.5 * recipe.steps)


def regularised(recipe: Recipe) -> None:
    """Leaves are drawn towards nothing, and not made for little gain."""
    recipe.options |= {"lambda": 4.0, "gamma": 0.5}


def bagged(recipe: Recipe) -> None:
    """Each tree sees seven tenths of the rows."""
    recipe.options |= {"bagging_fraction": 0.7, "bagging_freq": 1}


TASKS = (
    Task("claims_boosted", "boosting", claims_boosted, {"by_histogram": by_histogram},
         (known(boosting.too_deep, *DEEP), known(boosting.leaked, *LEAKED))),
    Task("crops_boosted", "boosting", crops_boosted, {"slower": slower},
         (known(trees.rare_class, *RARE), sagemaker.classes_confused(0, 3))),
    Task("plant_boosted", "boosting", plant_boosted, {"regularised": regularised},
         (known(third.noisy_and_deep, *DEEP), sixth.tiny_rounds())),
    Task("freight_boosted", "boosting", freight_boosted, {"slower": slower},
         (held.rolled_labels(), sixth.rounds_without_end(6))),
    Task("voters_light", "boosting", voters_light, {"bagged": bagged},
         (known(trees.deep_light, *DEEP), known(boosting.leaked, *LEAKED))),
    Task("parcels_light", "boosting", parcels_light, {"slower": slower},
         (known(boosting.leaked, *LEAKED), known(trees.rare_class, *RARE))),
)  # fmt: skip
