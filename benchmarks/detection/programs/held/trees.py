"""Held-out programs of boosted trees, LightGBM and XGBoost, and of Keras."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from benchmarks.detection.program import Fault, Task
from benchmarks.detection.programs import boosting, keras_nets
from benchmarks.detection.programs import data as known
from benchmarks.detection.programs.held import data
from benchmarks.detection.recipe import Recipe

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TASKS"]


def _light(recipe: Recipe, path: Path | None, seed: int) -> float:
    import lightgbm

    import tdbg_lab as tdbg
    from benchmarks.detection.loop import QUIET

    (x, y), (held_x, held_y) = (tuple(one.numpy() for one in pair) for pair in (recipe.train, recipe.held))
    settings = {"objective": "multiclass", "num_class": int(y.max()) + 1, "num_threads": 1, "seed": seed}
    settings |= {"num_leaves": 7, "learning_rate": 0.15, "verbosity": -1} | recipe.options
    train = lightgbm.Dataset(x, y, free_raw_data=False)
    held = lightgbm.Dataset(held_x, held_y, reference=train, free_raw_data=False)
    callbacks = [] if path is None else [
        tdbg.LightGBMCallback(path, train=(x, y), validation=(held_x, held_y), save_every=1, **QUIET)
    ]  # fmt: skip
    booster = lightgbm.train(settings, train, recipe.steps, valid_sets=[train, held],
                             valid_names=["train", "test"], callbacks=callbacks)  # fmt: skip
    told = booster.predict(held_x).argmax(1)
    return float(np.mean([np.mean(told[held_y == one] == one) for one in np.unique(held_y)]))


def light_wine(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *known.bunch("wine"), by_hand=_light, steps=25)


def light_classes(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.made_classes(), by_hand=_light, steps=25)


def boosted_moons(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.moons(), by_hand=boosting._boost, steps=30)


def deep_light(recipe: Recipe) -> None:
    """Leaves for single rows, and labels of which many are wrong."""
    boosting._noise(recipe, 0.45)
    recipe.options |= {"num_leaves": 400, "min_data_in_leaf": 2, "learning_rate": 0.5}


def rare_class(recipe: Recipe) -> None:
    """Hardly any row of the second class."""
    x, y = recipe.train
    keep = (y != 1) | (torch.cumsum(y == 1, 0) <= 5)
    recipe.train = (x[keep], y[keep])


def keras_moons(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.moons(), by_hand=keras_nets._fit, options={"epochs": 7})


def slow(recipe: Recipe) -> None:
    recipe.options |= {"learning_rate": 0.08}


TASKS = (
    Task("light_wine", "boosting", light_wine, {"slow": slow},
         (Fault("leaked", boosting.leaked, ("feature_importance_overweight", "overfit"), "sagemaker"),)),
    Task("light_classes", "boosting", light_classes, {},
         (Fault("deep_light", deep_light, ("tree_depth", "overfit", "overtraining"), "sagemaker"),
          Fault("rare_class", rare_class, ("class_imbalance", "confusion"), "sagemaker"))),
    Task("boosted_moons", "boosting", boosted_moons, {},
         (Fault("too_deep", boosting.too_deep, ("tree_depth", "overfit", "overtraining"), "sagemaker"),)),
    Task("keras_moons", "keras", keras_moons, {"tanh": keras_nets.with_options(activation="tanh")},
         (keras_nets.option("rate_explodes", keras_nets.RATE, "sagemaker", optimizer="sgd", rate=1e5),
          keras_nets.option("rate_tiny",
                            ("loss_not_decreasing", "weight_update_ratio", "learning_rate_scale"),
                            "sagemaker", rate=1e-8, epochs=8))),
)  # fmt: skip
