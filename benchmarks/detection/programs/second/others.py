"""Keras, XGBoost and LightGBM in the second held-out set."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.program import Fault, Task
from benchmarks.detection.programs import boosting, keras_nets
from benchmarks.detection.programs.held import trees
from benchmarks.detection.programs.second import data
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def keras_shells(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.quantiles(), by_hand=keras_nets._fit,
                  options={"epochs": 5, "activation": "elu", "optimizer": "nadam", "rate": 3e-3})  # fmt: skip


def keras_flipped(seed: int) -> Recipe:
    options = {"epochs": 4, "hidden": ("first", "second", "third"), "optimizer": "rmsprop"}
    return Recipe(nn.Identity(), *data.flipped(), by_hand=keras_nets._fit, options=options)


def boosted_shells(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.quantiles(), by_hand=boosting._boost, steps=25,
                  options={"max_depth": 4, "eta": 0.3, "colsample_bytree": 0.7})  # fmt: skip


def _whole(split: tuple[tuple[torch.Tensor, torch.Tensor], ...]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Labels of yes and no as whole numbers."""
    return [(x, y[:, 0].long()) for x, y in split]


def light_hastie(seed: int) -> Recipe:
    train, held = _whole(data.hastie())
    return Recipe(nn.Identity(), train, held, by_hand=trees._light, steps=30,
                  options={"num_leaves": 15, "feature_fraction": 0.8})  # fmt: skip


TASKS = (
    Task("keras_shells", "keras", keras_shells, {"gelu": keras_nets.with_options(activation="gelu")},
         (keras_nets.option("rate_explodes", keras_nets.RATE, "sagemaker", optimizer="sgd", rate=1e5),
          keras_nets.option("symmetric", ("symmetric_initialisation", "poor_weight_initialization"), "setup",
                            start="zeros"))),
    Task("keras_flipped", "keras", keras_flipped, {},
         (keras_nets.option("dead_units", ("dead_relu", "dead_units", "all_zero"), "sagemaker", 40, "second",
                            killed={"second": 40}),)),
    Task("boosted_shells", "boosting", boosted_shells, {"shallow": boosting.shallow},
         (Fault("leaked", boosting.leaked, ("feature_importance_overweight", "overfit"), "sagemaker"),)),
    Task("light_hastie", "boosting", light_hastie, {"slow": trees.slow},
         (Fault("deep_light", trees.deep_light, ("tree_depth", "overfit", "overtraining"), "sagemaker"),)),
)  # fmt: skip
