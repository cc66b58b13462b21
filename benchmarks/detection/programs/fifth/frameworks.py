"""Keras, XGBoost and LightGBM in the fifth set."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults.sagemaker import DEAD
from benchmarks.detection.program import Task
from benchmarks.detection.programs import boosting
from benchmarks.detection.programs.fifth import pictures_data, tables_data
from benchmarks.detection.programs.held import trees
from benchmarks.detection.programs.keras_nets import option, with_options
from benchmarks.detection.programs.third import frameworks as third
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]

SLOW = ("loss_not_decreasing", "weight_update_ratio", "learning_rate_too_low", "learning_rate_scale",
        "unchanged_tensor")  # fmt: skip
CONSTANT = ("symmetric_initialisation", "poor_weight_initialization", "all_zero", "constant_output",
            "vanishing_gradient", "tensor_variance")  # fmt: skip
ONE_ANSWER = ("output_loss_mismatch", "wrong_loss", "softmax", "constant_output")


def _reading(layers: Any, option: dict[str, Any]) -> list[Any]:
    act, start = option.get("act", "relu"), option.get("start", "he_normal")
    return [
        layers.Reshape((14, 14, 1)),
        layers.Conv2D(10, 3, padding="same", activation=act, name="near", kernel_initializer=start),
        layers.MaxPooling2D(),
        layers.Conv2D(20, 3, padding="same", activation=act, name="far", kernel_initializer=start),
        layers.MaxPooling2D(), layers.Flatten(), layers.Dropout(0.2),
        layers.Dense(10, activation="softmax", name="head", kernel_initializer=start),
    ]  # fmt: skip


def keras_letters(seed: int) -> Recipe:
    options = {"layers": _reading, "loss": "sparse_categorical_crossentropy", "optimizer": "Adam",
               "rate": 4e-3, "batch": 55, "epochs": 5, "score": third._share}  # fmt: skip
    return Recipe(nn.Identity(), *pictures_data.letters(), by_hand=third._fit, options=options)


def _pricing(layers: Any, option: dict[str, Any]) -> list[Any]:
    act, start = option.get("act", "elu"), option.get("start", "glorot_uniform")
    return [
        layers.Dense(64, activation=act, name="first", kernel_initializer=start),
        layers.Dense(32, activation=act, name="second", kernel_initializer=start),
        layers.Dense(1, name="head", activation=option.get("end"), kernel_initializer=start),
    ]  # fmt: skip


def keras_houses(seed: int) -> Recipe:
    options = {"layers": _pricing, "loss": "mse", "optimizer": "Nadam", "rate": 5e-3, "batch": 60,
               "epochs": 6, "score": fit_of}  # fmt: skip
    return Recipe(nn.Identity(), *tables_data.houses(), by_hand=third._fit, options=options)


def _leaving(layers: Any, option: dict[str, Any]) -> list[Any]:
    act = option.get("act", "relu")
    return [
        layers.Dense(48, name="first"), layers.BatchNormalization(name="norm"),
        layers.Activation(act, name="act"), layers.Dropout(0.2),
        layers.Dense(24, activation=act, name="second"),
        layers.Dense(1, name="head", activation=option.get("end", "sigmoid")),
    ]  # fmt: skip


def _told_rightly(told: torch.Tensor, wanted: torch.Tensor) -> float:
    return float(((told > 0.5) == (wanted > 0.5)).float().mean())


def keras_churn(seed: int) -> Recipe:
    options = {"layers": _leaving, "loss": "binary_crossentropy", "optimizer": "AdamW", "rate": 2e-3,
               "settings": {"weight_decay": 0.01}, "batch": 65, "epochs": 6,
               "score": _told_rightly}  # fmt: skip
    return Recipe(nn.Identity(), *tables_data.churn(), by_hand=third._fit, options=options)


def _wearing(layers: Any, option: dict[str, Any]) -> list[Any]:
    from keras.initializers import VarianceScaling

    gain = option.get("gain", 1.0)
    return [
        layers.Dense(48, activation="tanh", name="first", kernel_initializer=VarianceScaling(gain)),
        layers.Dense(48, activation="tanh", name="second", kernel_initializer=VarianceScaling(gain)),
        layers.Dense(6, activation="softmax", name="head", kernel_initializer=VarianceScaling(gain)),
    ]


def keras_activity(seed: int) -> Recipe:
    options = {"layers": _wearing, "loss": "sparse_categorical_crossentropy", "optimizer": "SGD",
               "settings": {"momentum": 0.9}, "rate": 0.05, "batch": 50, "epochs": 5,
               "score": third._share}  # fmt: skip
    return Recipe(nn.Identity(), *tables_data.activity(), by_hand=third._fit, options=options)


def _classes(split: tables_data.Split) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Yes and no in a column as classes."""
    return [(x, y.reshape(len(y)).long()) for x, y in split]


def _numbers(split: tables_data.Split) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(x, y[:, 0]) for x, y in split]


def boosted_churn(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *_classes(tables_data.churn()), by_hand=boosting._boost, steps=40,
                  options={"max_depth": 3, "eta": 0.12, "colsample_bytree": 0.8,
                           "min_child_weight": 3})  # fmt: skip


def boosted_houses(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *_numbers(tables_data.houses()), by_hand=third._boost_numbers, steps=60,
                  options={"max_depth": 4, "eta": 0.1})  # fmt: skip


def light_terrain(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *tables_data.terrain(), by_hand=trees._light, steps=40,
                  options={"num_leaves": 15, "learning_rate": 0.12, "feature_fraction": 0.8})  # fmt: skip


def light_credit(seed: int) -> Recipe:
    """One in eight is what is looked for, and weighs more for it."""
    return Recipe(nn.Identity(), *_classes(tables_data.credit()), by_hand=trees._light, steps=40,
                  options={"objective": "multiclassova", "is_unbalance": True, "num_leaves": 8,
                           "learning_rate": 0.08, "min_data_in_leaf": 20})  # fmt: skip


def by_histogram(recipe: Recipe) -> None:
    """Leaves where they help most, of a histogram of few bins."""
    recipe.options |= {"tree_method": "hist", "max_bin": 64, "grow_policy": "lossguide", "max_leaves": 10}


def parts(recipe: Recipe) -> None:
    """Each tree sees six tenths of the rows and of the columns."""
    recipe.options |= {"subsample": 0.6, "colsample_bytree": 0.6}


def random_rows(recipe: Recipe) -> None:
    """Two thirds of the rows for each tree."""
    recipe.options |= {"bagging_fraction": 0.67, "bagging_freq": 1}


def extra_trees(recipe: Recipe) -> None:
    """Thresholds are drawn by chance."""
    recipe.options |= {"extra_trees": True}


DEEP = ("tree_depth", "overfit", "overtraining")
LEAKED = ("feature_importance_overweight", "overfit")
known = third._known
TASKS = (
    Task("keras_letters", "keras", keras_letters, {"elu": with_options(act="elu")},
         (option("dead_units", DEAD, "sagemaker", 60, "far",
                 killed={"far": 60}),
          option("weights_zero", CONSTANT, "setup", start="zeros"))),
    Task("keras_houses", "keras", keras_houses, {"rmsprop": with_options(optimizer="RMSprop", rate=2e-3)},
         (option("rectified", (*ONE_ANSWER, "output_range", "labels_out_of_range", "dead_relu"), "setup",
                 end="relu"),
          fifth.in_raw_units())),
    Task("keras_churn", "keras", keras_churn,
         {"adam": with_options(optimizer="Adam", settings={}, rate=1e-3)},
         (option("softmax_of_one", ONE_ANSWER, "setup", end="softmax"),
          option("dead_units", DEAD, "sagemaker", 80, "second",
                 killed={"second": 80}))),
    Task("keras_activity", "keras", keras_activity,
         {"adam": with_options(optimizer="Adam", settings={}, rate=2e-3)},
         (option("rate_tiny", SLOW, "sagemaker", rate=1e-7),
          option("weights_large", ("saturated_activation", "poor_weight_initialization", "dead_units",
                                   "vanishing_gradient", "exploding_tensor"),
                 "sagemaker", gain=2500.0))),
    Task("boosted_churn", "boosting", boosted_churn, {"by_histogram": by_histogram},
         (known(boosting.leaked, *LEAKED), known(boosting.too_deep, *DEEP))),
    Task("boosted_houses", "boosting", boosted_houses, {"parts": parts},
         (known(third.noisy_and_deep, *DEEP), known(boosting.leaked, *LEAKED))),
    Task("light_terrain", "boosting", light_terrain, {"random_rows": random_rows},
         (known(trees.rare_class, "class_imbalance", "confusion"), known(trees.deep_light, *DEEP))),
    Task("light_credit", "boosting", light_credit, {"extra_trees": extra_trees},
         (known(boosting.leaked, *LEAKED), known(trees.rare_class, "class_imbalance", "confusion"))),
)  # fmt: skip
