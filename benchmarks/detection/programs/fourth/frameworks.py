"""Keras, XGBoost and LightGBM in the fourth held-out set."""

from __future__ import annotations

from typing import Any

from torch import nn

from benchmarks.detection.faults.sagemaker import DEAD
from benchmarks.detection.program import Task
from benchmarks.detection.programs import boosting, keras_nets
from benchmarks.detection.programs.fourth import data, rows_data
from benchmarks.detection.programs.held import trees
from benchmarks.detection.programs.keras_nets import option, with_options
from benchmarks.detection.programs.third import frameworks as third
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]


def _sounding(layers: Any, option: dict[str, Any]) -> list[Any]:
    act = option.get("act", "relu")
    return [
        layers.Reshape((48, 1)), layers.Conv1D(16, 7, strides=2, activation=act, name="near"),
        layers.Conv1D(24, 5, activation=act, name="far"), layers.GlobalMaxPooling1D(),
        layers.Dense(32, activation=act, name="mix"),
        layers.Dense(4, activation="softmax", name="head"),
    ]  # fmt: skip


def keras_tones(seed: int) -> Recipe:
    options = {"layers": _sounding, "loss": "sparse_categorical_crossentropy", "optimizer": "AdamW",
               "rate": 4e-3, "settings": {"weight_decay": 0.02}, "batch": 50, "epochs": 6,
               "score": third._share}  # fmt: skip
    return Recipe(nn.Identity(), *rows_data.tones(), by_hand=third._fit, options=options)


def _counting(layers: Any, option: dict[str, Any]) -> list[Any]:
    act = option.get("act", "gelu")
    return [
        layers.Dense(40, activation=act, name="first"), layers.LayerNormalization(name="norm"),
        layers.Dense(24, activation=act, name="second"), layers.Dropout(0.1),
        layers.Dense(1, name="head", activation=option.get("end", "exponential")),
    ]  # fmt: skip


def keras_counts(seed: int) -> Recipe:
    """Counts by a likelihood that rises and falls with how many there are."""
    options = {"layers": _counting, "loss": "poisson", "optimizer": "Lion", "rate": 1e-3, "batch": 32,
               "epochs": 5, "score": fit_of}  # fmt: skip
    return Recipe(nn.Identity(), *data.zeros(), by_hand=third._fit, options=options)


def boosted_crossed(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.crossed(), by_hand=boosting._boost, steps=30,
                  options={"max_depth": 5, "eta": 0.25, "colsample_bynode": 0.7})  # fmt: skip


def boosted_waits(seed: int) -> Recipe:
    """The tail is long: what is far off counts by its distance, not by its square."""
    flat = [(x, y[:, 0]) for x, y in data.waits()]
    return Recipe(nn.Identity(), *flat, by_hand=third._boost_numbers, steps=45,
                  options={"objective": "reg:absoluteerror", "eta": 0.2})  # fmt: skip


def light_grades(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.grades(), by_hand=trees._light, steps=30,
                  options={"num_leaves": 10, "bagging_fraction": 0.7, "bagging_freq": 1})  # fmt: skip


def light_weak(seed: int) -> Recipe:
    """Hardly anything can be told: stumps, slowly."""
    found = [(x, y[:, 0].long()) for x, y in data.weak()]
    return Recipe(nn.Identity(), *found, by_hand=trees._light, steps=40,
                  options={"num_leaves": 3, "learning_rate": 0.1, "lambda_l2": 5.0})  # fmt: skip


def loss_guided(recipe: Recipe) -> None:
    """Trees grow where it helps most, not level by level."""
    recipe.options |= {"tree_method": "hist", "grow_policy": "lossguide", "max_leaves": 12, "max_depth": 0}


def one_side(recipe: Recipe) -> None:
    """Rows that are told well are mostly left out of each tree."""
    recipe.options |= {"data_sample_strategy": "goss", "bagging_freq": 0, "bagging_fraction": 1.0}


TASKS = (
    Task("keras_tones", "keras", keras_tones, {"tanh": with_options(act="tanh")},
         (option("dead_units", DEAD, "sagemaker", 60, "mix",
                 killed={"mix": 60}),
          option("rate_explodes", keras_nets.RATE, "sagemaker", optimizer="SGD", settings={}, rate=3e4))),
    Task("keras_counts", "keras", keras_counts,
         {"adafactor": with_options(optimizer="Adafactor", rate=2e-2)},
         (option("squashed_output", ("output_loss_mismatch", "wrong_loss", "saturated_activation"), "setup",
                 end="sigmoid"),
          option("rate_tiny", ("loss_not_decreasing", "weight_update_ratio", "learning_rate_too_low",
                               "learning_rate_scale"), "sagemaker", rate=1e-8))),
    Task("boosted_crossed", "boosting", boosted_crossed, {"loss_guided": loss_guided},
         (third._known(boosting.too_deep, "tree_depth", "overfit", "overtraining"),
          third._known(trees.rare_class, "class_imbalance", "confusion"))),
    Task("boosted_waits", "boosting", boosted_waits, {},
         (third._known(boosting.leaked, "feature_importance_overweight", "overfit"),
          third._known(third.noisy_and_deep, "tree_depth", "overfit", "overtraining"))),
    Task("light_grades", "boosting", light_grades, {"one_side": one_side},
         (third._known(trees.deep_light, "tree_depth", "overfit", "overtraining"),)),
    Task("light_weak", "boosting", light_weak, {},
         (third._known(boosting.leaked, "feature_importance_overweight", "overfit"),)),
)  # fmt: skip
