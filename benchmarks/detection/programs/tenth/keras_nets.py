"""Keras in the tenth set: pictures, steps, mails, ovens and a table by its own `fit`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from benchmarks.detection.faults import sagemaker, sixth_sequences
from benchmarks.detection.faults.third import TOO_SLOW
from benchmarks.detection.program import Task
from benchmarks.detection.programs.eighth import tables_data
from benchmarks.detection.programs.fifth.frameworks import CONSTANT
from benchmarks.detection.programs.keras_nets import RATE, option, with_options
from benchmarks.detection.programs.ninth import keras_data
from benchmarks.detection.programs.ninth.keras_nets import _following
from benchmarks.detection.programs.seventh.keras_nets import SILENT_ORDER
from benchmarks.detection.programs.sixth.keras_nets import (
    CLASSES,
    DEAD,
    FORGOTTEN,
    NUMBERS,
    VANISHED,
    YES,
    _layers,
)
from benchmarks.detection.programs.tenth import pictures_data, signals_data
from benchmarks.detection.programs.third.frameworks import _fit
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def _looking(layers: Any, option: dict[str, Any]) -> list[Any]:
    """Convolutions of which each but the first halves the side, and a dense layer."""
    start, act, found = option.get("start", "he_normal"), option["act"], [layers.Permute((2, 3, 1))]
    for place, count in enumerate(option["channels"], 1):
        found += [
            layers.Conv2D(count, 3, strides=min(place, 2), padding="same", kernel_initializer=start,
                          name=f"look{place}"),
            *([layers.BatchNormalization()] if option["norm"] else []), layers.Activation(act),
        ]  # fmt: skip
    return [
        *found, layers.Flatten(), layers.Dropout(option["drop"]),
        layers.Dense(32, activation=act, kernel_initializer=start, name="mix"),
        layers.Dense(option["outputs"], option["end"], kernel_initializer=start, name="head"),
    ]  # fmt: skip


def _stepping(layers: Any, option: dict[str, Any]) -> list[Any]:
    """One look in time, a recurrent layer in both directions, and a dense layer."""
    return [
        layers.Conv1D(24, 5, strides=2, padding="same", activation=option["act"], name="look"),
        layers.Bidirectional(layers.GRU(12), name="memory"),
        layers.Dropout(0.2), layers.Dense(option["outputs"], "softmax", name="head"),
    ]  # fmt: skip


def _sorting(layers: Any, option: dict[str, Any]) -> list[Any]:
    """The words' vectors, looks at three of them at a time, and the largest answer of each (Kim, 2014)."""
    return [
        layers.Embedding(301, option["width"], name="words"),
        layers.Conv1D(48, 3, activation="relu", name="look"), layers.GlobalMaxPooling1D(),
        layers.Dropout(0.3), layers.Dense(option["outputs"], "softmax", name="head"),
    ]  # fmt: skip


def _keras(found: Any, layers: Any, **options: Any) -> Recipe:
    return Recipe(nn.Identity(), *found, by_hand=_fit, options={"layers": layers} | options)


def keras_fruits(seed: int) -> Recipe:
    return _keras(
        pictures_data.fruits(1021, 3600), _looking, **CLASSES, channels=(16, 24, 32), outputs=5, act="relu",
        norm=False, drop=0.2, optimizer="Adam", rate=2e-3, batch=60, epochs=5,
    )  # fmt: skip


def keras_clouds(seed: int) -> Recipe:
    return _keras(
        pictures_data.clouds(1022, 3600), _looking, **CLASSES, channels=(12, 24), outputs=4, act="silu",
        norm=True, drop=0.4, optimizer="SGD", rate=0.015, settings={"momentum": 0.9, "nesterov": True},
        batch=64, epochs=5,
    )  # fmt: skip


def keras_steps(seed: int) -> Recipe:
    return _keras(
        signals_data.walked(1023, 2800, 24, 0.7), _stepping, **CLASSES, act="relu", outputs=5,
        optimizer="Adam", rate=8e-3, batch=60, epochs=7,
    )  # fmt: skip


def keras_leases(seed: int) -> Recipe:
    return _keras(
        tables_data.cases(1024, 3600, 16, 4), _layers, **YES, widths=(72, 36), act="relu", drop=0.2,
        start="he_normal", optimizer="Nadam", rate=2e-3, batch=64, epochs=5,
    )  # fmt: skip


def keras_ovens(seed: int) -> Recipe:
    return _keras(
        signals_data.ovens(1025), _following, **(NUMBERS | {"loss": "huber"}), cell="GRU", optimizer="Adam",
        rate=8e-3, batch=60, epochs=5,
    )  # fmt: skip


def keras_mails(seed: int) -> Recipe:
    return _keras(
        keras_data.texts(1026, 4800, 4, 0.8), _sorting, **CLASSES, width=16, outputs=4, optimizer="Adam",
        rate=4e-3, batch=64, epochs=3,
    )  # fmt: skip


TASKS = (
    Task("keras_fruits", "keras", keras_fruits, {"rmsprop": with_options(optimizer="RMSprop", rate=1e-3)},
         (option("dead_units", DEAD, "sagemaker", 90, "mix", killed={"mix": 90}), sagemaker.raw_pixels())),
    Task("keras_clouds", "keras", keras_clouds, {"batches": with_options(batch=48)},
         (option("softmax_forgotten", FORGOTTEN, "setup", end=None),
          option("weights_zero", CONSTANT, "setup", start="zeros"))),
    Task("keras_steps", "keras", keras_steps, {"nadam": with_options(optimizer="Nadam", rate=5e-3)},
         (option("rate_of_another", RATE, "setup", rate=1.0),
          replace(option("not_shuffled", SILENT_ORDER, "silent", 35, shuffle=False), by_construction=True))),
    Task("keras_leases", "keras", keras_leases, {"elu": with_options(act="elu")},
         (option("sigmoid_forgotten", FORGOTTEN, "setup", end=None),
          option("deep_sigmoid", VANISHED, "sagemaker", widths=(64,) * 8, act="sigmoid", drop=0.0,
                 start="glorot_uniform", optimizer="SGD", rate=0.05))),
    Task("keras_ovens", "keras", keras_ovens, {"batches": with_options(batch=48)},
         (option("clipped_away", (*TOO_SLOW, "vanishing_gradient", "loss_not_decreasing"), "setup",
                 optimizer="SGD", rate=0.05, settings={"clipvalue": 1e-5}),
          sixth_sequences.stamps_raw(1))),
    Task("keras_mails", "keras", keras_mails, {"wider": with_options(width=24)},
         (sagemaker.padded(0.9),
          option("too_long", ("overtraining", "overfit"), "sagemaker", epochs=20))),
)  # fmt: skip
