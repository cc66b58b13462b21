"""Keras in the twelfth set: pictures, songs of whales, petitions and beans by its own `fit`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from benchmarks.detection.faults import fifth_sequences, held, sagemaker
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth.frameworks import CONSTANT, SLOW
from benchmarks.detection.programs.keras_nets import RATE, option, with_options
from benchmarks.detection.programs.ninth import keras_data as words_data
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
from benchmarks.detection.programs.tenth.keras_nets import _keras
from benchmarks.detection.programs.twelfth import keras_data, pictures_data

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def _looking(layers: Any, option: dict[str, Any]) -> list[Any]:
    """Looks of 4 x 4 that halve the side, each normalised by pictures, and a dense layer."""
    from keras.initializers import VarianceScaling

    def start() -> Any:
        return option.get("start") or VarianceScaling(option.get("gain", 2.0), seed=None)

    found: list[Any] = [layers.Permute((2, 3, 1))]
    for place, count in enumerate(option["channels"], 1):
        found += [
            layers.Conv2D(count, 4, 2, padding="same", kernel_initializer=start(), name=f"look{place}"),
            *([layers.LayerNormalization()] if option.get("norm") else []),
            layers.Activation(option["act"], name=f"act{place}"),
        ]  # fmt: skip
    return [
        *found, layers.Flatten(), layers.Dropout(option.get("drop", 0.0)),
        layers.Dense(36, activation=option["act"], kernel_initializer=start(), name="mix"),
        layers.Dense(option["outputs"], activation=option["end"], kernel_initializer=start(), name="head"),
    ]  # fmt: skip


def _listening(layers: Any, option: dict[str, Any]) -> list[Any]:
    """Looks in time at half the length each, and the mean and a dense layer."""
    act = option["act"]
    return [
        layers.Conv1D(24, 7, 2, padding="same", activation=act, name="near"), layers.LayerNormalization(),
        layers.Conv1D(40, 5, 2, padding="same", activation=act, name="far"), layers.GlobalAveragePooling1D(),
        layers.Dropout(0.1), layers.Dense(32, activation=act, name="mix"),
        layers.Dense(option["outputs"], activation=option["end"], name="head"),
    ]  # fmt: skip


def _signing(layers: Any, option: dict[str, Any]) -> list[Any]:
    """The words' vectors, a recurrent layer, and the largest of its answers."""
    return [
        layers.Embedding(301, option["width"], name="words"),
        layers.GRU(28, return_sequences=True, name="memory"), layers.GlobalMaxPooling1D(),
        layers.Dropout(0.2), layers.Dense(option["outputs"], activation=option["end"], name="head"),
    ]  # fmt: skip


def keras_tracks(seed: int) -> Recipe:
    return _keras(
        pictures_data.tracks(1221, 3600), _looking, **CLASSES, channels=(16, 32), outputs=5, act="relu",
        drop=0.2, optimizer="Adam", rate=2e-3, batch=50, epochs=5,
    )  # fmt: skip


def keras_timbers(seed: int) -> Recipe:
    return _keras(
        pictures_data.timbers(1222, 3600), _looking, **CLASSES, channels=(16, 32), outputs=4, act="gelu",
        norm=True, drop=0.2, optimizer="AdamW", rate=2e-3, settings={"weight_decay": 0.01}, batch=56,
        epochs=5,
    )  # fmt: skip


def keras_whales(seed: int) -> Recipe:
    return _keras(
        keras_data.whales(1223), _listening, **CLASSES, outputs=4, act="relu", optimizer="Nadam", rate=3e-3,
        batch=60, epochs=5,
    )  # fmt: skip


def keras_petitions(seed: int) -> Recipe:
    return _keras(
        words_data.texts(1224, 3600, 3, 0.8), _signing, **CLASSES, width=18, outputs=3, optimizer="Adam",
        rate=4e-3, batch=60, epochs=4,
    )  # fmt: skip


def keras_glasses(seed: int) -> Recipe:
    return _keras(
        pictures_data.glasses(1225, 3600), _looking, **(NUMBERS | {"loss": "huber"}), channels=(12, 24),
        outputs=2, act="swish", optimizer="RMSprop", rate=1e-3, batch=60, epochs=5,
    )  # fmt: skip


def keras_beans(seed: int) -> Recipe:
    return _keras(
        keras_data.beans(1226), _layers, **YES, widths=(64, 32), act="relu", drop=0.1, start="he_normal",
        optimizer="Adam", rate=3e-3, batch=56, epochs=5,
    )  # fmt: skip


TASKS = (
    Task("keras_tracks", "keras", keras_tracks, {"nadam": with_options(optimizer="Nadam")},
         (option("weights_zero", CONSTANT, "setup", start="zeros"),
          option("dead_units", DEAD, "sagemaker", 80, "mix", killed={"mix": 80}))),
    Task("keras_timbers", "keras", keras_timbers, {"batches": with_options(batch=48)},
         (option("rate_large", RATE, "setup", rate=1.0),
          replace(option("not_shuffled", SILENT_ORDER, "silent", 49, shuffle=False), by_construction=True))),
    Task("keras_whales", "keras", keras_whales, {"adam": with_options(optimizer="Adam")},
         (fifth_sequences.raw_readings(2048.0, 300.0), sagemaker.unbalanced(0.97, 2))),
    Task("keras_petitions", "keras", keras_petitions, {"wider": with_options(width=24)},
         (option("softmax_forgotten", FORGOTTEN, "setup", end=None), held.unknown_words(0.97))),
    Task("keras_glasses", "keras", keras_glasses, {"batches": with_options(batch=48)},
         (option("weights_large", LARGE, "sagemaker", gain=2500.0),
          option("rate_tiny", SLOW, "sagemaker", rate=1e-7))),
    Task("keras_beans", "keras", keras_beans, {"elu": with_options(act="elu")},
         (held.rolled_labels(),
          option("deep_sigmoid", VANISHED, "sagemaker", widths=(64,) * 8, act="sigmoid", drop=0.0,
                 start="glorot_uniform", optimizer="SGD", rate=0.05))),
)  # fmt: skip
