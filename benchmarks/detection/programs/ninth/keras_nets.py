"""Keras in the ninth set: pictures, signals, words, series, a table and spectra by its own `fit`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from benchmarks.detection.faults import fifth_sequences, fifth_tables, held
from benchmarks.detection.program import Fault, Task
from benchmarks.detection.programs.eighth import tables_data
from benchmarks.detection.programs.fifth.frameworks import ONE_ANSWER, SLOW
from benchmarks.detection.programs.keras_nets import RATE, option, with_options
from benchmarks.detection.programs.ninth import keras_data, pictures_data
from benchmarks.detection.programs.seventh.keras_nets import SILENT_ORDER
from benchmarks.detection.programs.sixth.keras_nets import (
    CLASSES,
    DEAD,
    FORGOTTEN,
    LARGE,
    NUMBERS,
    VANISHED,
    YES,
    _layers,
)
from benchmarks.detection.programs.third.frameworks import _fit
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def _seeing(layers: Any, option: dict[str, Any]) -> list[Any]:
    """Normalised convolutions with pooling, and a dense layer."""
    found: list[Any] = [layers.Permute((2, 3, 1))]
    for place, count in enumerate(option["channels"], 1):
        found += [
            layers.Conv2D(count, 3, padding="same", use_bias=False, name=f"look{place}"),
            layers.BatchNormalization(), layers.Activation(option["act"]), layers.MaxPooling2D(),
        ]  # fmt: skip
    return [*found, layers.Flatten(), layers.Dropout(0.2), layers.Dense(5, "softmax", name="head")]


def _hearing(layers: Any, option: dict[str, Any]) -> list[Any]:
    """Convolutions in time, the largest answer of each, and a dense layer."""
    act = option["act"]
    return [
        layers.Conv1D(24, 7, padding="same", activation=act, name="near"), layers.MaxPooling1D(2),
        layers.Conv1D(48, 5, padding="same", activation=act, name="far"), layers.GlobalMaxPooling1D(),
        layers.Dense(32, activation=act, name="mix"), layers.Dense(5, activation=option["end"], name="head"),
    ]  # fmt: skip


def _reading(layers: Any, option: dict[str, Any]) -> list[Any]:
    """The mean of the words' vectors, and dense layers."""
    return [
        layers.Embedding(301, option["width"], name="words"), layers.GlobalAveragePooling1D(),
        layers.Dropout(option["drop"]), layers.Dense(16, activation="relu", name="mix"),
        layers.Dense(1, activation="sigmoid", name="head"),
    ]  # fmt: skip


def _following(layers: Any, option: dict[str, Any]) -> list[Any]:
    """One recurrent layer, and the next number by its last state."""
    return [getattr(layers, option["cell"])(24, name="memory"), layers.Dense(1, name="head")]


def _keras(found: Any, layers: Any, **options: Any) -> Recipe:
    return Recipe(nn.Identity(), *found, by_hand=_fit, options={"layers": layers} | options)


def keras_buttons(seed: int) -> Recipe:
    return _keras(
        pictures_data.buttons(911, 4400, 0.1), _seeing, **CLASSES, channels=(16, 32), act="relu",
        optimizer="Adam", rate=4e-3, batch=80, epochs=7,
    )  # fmt: skip


def keras_motors(seed: int) -> Recipe:
    return _keras(
        keras_data.motors(912), _hearing, **CLASSES, act="relu", optimizer="RMSprop", rate=2e-3, batch=60,
        epochs=5,
    )  # fmt: skip


def keras_reviews(seed: int) -> Recipe:
    return _keras(
        keras_data.reviews(913, 6000, 0.7), _reading, **YES, width=12, drop=0.3, optimizer="Adam",
        rate=4e-3, batch=64, epochs=3,
    )  # fmt: skip


def keras_deposits(seed: int) -> Recipe:
    return _keras(
        tables_data.cases(914, 3600, 14, 3), _layers, **YES, widths=(64, 32), act="tanh", drop=0.1,
        optimizer="Adam", rate=3e-3, batch=60, epochs=5,
    )  # fmt: skip


def keras_turbines(seed: int) -> Recipe:
    return _keras(
        keras_data.turbines(915), _following, **NUMBERS, cell="LSTM", optimizer="Adam", rate=8e-3, batch=60,
        epochs=5,
    )  # fmt: skip


def keras_spectra(seed: int) -> Recipe:
    return _keras(
        keras_data.spectra(916), _layers, **NUMBERS, widths=(64, 16, 64), outputs=40, act="relu",
        optimizer="Nadam", rate=2e-3, batch=50, epochs=6,
    )  # fmt: skip


def _by_heart(rows: int, epochs: int) -> Fault:
    """Few texts, read again and again."""

    def change(recipe: Recipe) -> None:
        recipe.train = (recipe.train[0][:rows], recipe.train[1][:rows])
        recipe.options |= {"epochs": epochs, "batch": 32}

    return Fault("by_heart", change, ("overfit", "overtraining"), "sagemaker")


TASKS = (
    Task("keras_buttons", "keras", keras_buttons, {"swish": with_options(act="swish")},
         (option("rate_large", RATE, "setup", rate=3.0),
          replace(option("not_shuffled", SILENT_ORDER, "silent", 42, shuffle=False), by_construction=True))),
    Task("keras_motors", "keras", keras_motors, {"adam": with_options(optimizer="Adam")},
         (option("softmax_forgotten", FORGOTTEN, "setup", end=None),
          fifth_sequences.raw_readings(2048.0, 300.0))),
    Task("keras_reviews", "keras", keras_reviews, {"batches": with_options(batch=48)},
         (_by_heart(120, 60), held.rolled_labels())),
    Task("keras_deposits", "keras", keras_deposits,
         {"adamw": with_options(optimizer="AdamW", settings={"weight_decay": 0.02})},
         (option("softmax_of_one", ONE_ANSWER, "setup", end="softmax"),
          option("weights_large", LARGE, "sagemaker", gain=2500.0))),
    Task("keras_turbines", "keras", keras_turbines, {"gru": with_options(cell="GRU")},
         (option("rate_tiny", SLOW, "sagemaker", rate=1e-6), fifth_tables.missing_values(1))),
    Task("keras_spectra", "keras", keras_spectra, {"gelu": with_options(act="gelu")},
         (option("deep_sigmoid", VANISHED, "sagemaker", widths=(64,) * 8, act="sigmoid", optimizer="SGD",
                 rate=0.05),
          option("dead_units", DEAD, "sagemaker", 90, "dense2|act2", killed={"dense2": 90}))),
)  # fmt: skip
