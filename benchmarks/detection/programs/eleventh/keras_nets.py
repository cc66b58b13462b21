"""Keras in the eleventh set: pictures, spectrograms, notes and a table by its own `fit`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from benchmarks.detection.faults import held, sagemaker
from benchmarks.detection.faults.third import TOO_SLOW
from benchmarks.detection.program import Task
from benchmarks.detection.programs.eighth import tables_data
from benchmarks.detection.programs.eleventh import pictures_data
from benchmarks.detection.programs.fifth.frameworks import ONE_ANSWER
from benchmarks.detection.programs.keras_nets import RATE, option, with_options
from benchmarks.detection.programs.ninth import keras_data
from benchmarks.detection.programs.ninth.keras_nets import _by_heart
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
from benchmarks.detection.programs.tenth.keras_nets import _keras, _sorting

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def _seeing(layers: Any, option: dict[str, Any]) -> list[Any]:
    """Looks with means of four pixels between them, and a dense layer."""
    from keras.initializers import VarianceScaling

    def start() -> Any:
        return VarianceScaling(option.get("gain", 2.0), seed=None)

    found: list[Any] = [layers.Permute((2, 3, 1))]
    for place, count in enumerate(option["channels"], 1):
        found += [
            layers.Conv2D(count, 3, padding="same", kernel_initializer=start(), name=f"look{place}"),
            layers.Activation(option["act"], name=f"act{place}"), layers.AveragePooling2D(2),
        ]  # fmt: skip
    return [
        *found, layers.Flatten(), layers.Dropout(option.get("drop", 0.0)),
        layers.Dense(40, activation=option["act"], kernel_initializer=start(), name="mix"),
        layers.Dense(option["outputs"], activation=option["end"], name="head"),
    ]  # fmt: skip


def _hearing(layers: Any, option: dict[str, Any]) -> list[Any]:
    """A look at three moments at a time, a recurrent layer, and what it knows at the end."""
    return [
        layers.Reshape((20, 16)), layers.Permute((2, 1)),
        layers.Conv1D(32, 3, padding="same", activation="relu", name="look"),
        getattr(layers, option["cell"])(32, name="memory"), layers.Dropout(0.1),
        layers.Dense(option["outputs"], activation=option["end"], name="head"),
    ]  # fmt: skip


def keras_lesions(seed: int) -> Recipe:
    return _keras(
        pictures_data.lesions(1121, 3600), _seeing, **CLASSES, channels=(16, 32), outputs=5, act="relu",
        drop=0.2, optimizer="AdamW", rate=3e-3, settings={"weight_decay": 0.02}, batch=56, epochs=5,
    )  # fmt: skip


def keras_keywords(seed: int) -> Recipe:
    return _keras(
        pictures_data.keywords(1122, 6, 3200), _hearing, **CLASSES, cell="GRU", outputs=6, optimizer="Adam",
        rate=5e-3, batch=60, epochs=5,
    )  # fmt: skip


def keras_notes(seed: int) -> Recipe:
    return _keras(
        keras_data.texts(1123, 3600, 4, 0.8), _sorting, **CLASSES, width=20, outputs=4, optimizer="Adam",
        rate=4e-3, batch=64, epochs=6,
    )  # fmt: skip


def keras_permits(seed: int) -> Recipe:
    return _keras(
        tables_data.sorts(1124, 4000, 14, 4, 3), _layers, **CLASSES, widths=(80, 40), outputs=4, act="relu",
        drop=0.1, start="he_normal", optimizer="RMSprop", rate=2e-3, batch=60, epochs=5,
    )  # fmt: skip


def keras_arms(seed: int) -> Recipe:
    return _keras(
        pictures_data.arms(1125), _seeing, **NUMBERS, channels=(16, 32), outputs=4, act="tanh",
        optimizer="Nadam", rate=2e-3, batch=60, epochs=5,
    )  # fmt: skip


def keras_lungs(seed: int) -> Recipe:
    return _keras(
        pictures_data.lungs(1126, 3600, 0.05), _seeing, **YES, channels=(16, 32), act="swish",
        optimizer="Adam", rate=4e-3, batch=60, epochs=6,
    )  # fmt: skip


TASKS = (
    Task("keras_lesions", "keras", keras_lesions, {"elu": with_options(act="elu")},
         (option("softmax_forgotten", FORGOTTEN, "setup", end=None),
          option("dead_units", DEAD, "sagemaker", 90, "mix", killed={"mix": 90}))),
    Task("keras_keywords", "keras", keras_keywords, {"lstm": with_options(cell="LSTM")},
         (held.rolled_labels(),
          replace(option("not_shuffled", SILENT_ORDER, "silent", 40, shuffle=False), by_construction=True))),
    Task("keras_notes", "keras", keras_notes, {"batches": with_options(batch=48)},
         (held.unknown_words(0.97), _by_heart(120, 60))),
    Task("keras_permits", "keras", keras_permits, {"adam": with_options(optimizer="Adam", rate=3e-3)},
         (sagemaker.unbalanced(0.97, 1),
          option("deep_sigmoid", VANISHED, "sagemaker", widths=(64,) * 8, act="sigmoid", drop=0.0,
                 start="glorot_uniform", optimizer="SGD", rate=0.05))),
    Task("keras_arms", "keras", keras_arms, {"adam": with_options(optimizer="Adam")},
         (option("weights_large", LARGE, "sagemaker", gain=2500.0),
          option("clipped_away", (*TOO_SLOW, "vanishing_gradient", "loss_not_decreasing"), "setup",
                 optimizer="SGD", rate=0.05, settings={"global_clipnorm": 1e-5}))),
    Task("keras_lungs", "keras", keras_lungs, {"batches": with_options(batch=48)},
         (option("softmax_of_one", ONE_ANSWER, "setup", end="softmax"),
          option("rate_large", RATE, "setup", rate=1.0))),
)  # fmt: skip
