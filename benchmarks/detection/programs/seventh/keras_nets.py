"""Keras in the seventh set: dense nets and separable convolutions by its own `fit`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, held, sagemaker
from benchmarks.detection.faults.third import TOO_SLOW
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth.frameworks import CONSTANT
from benchmarks.detection.programs.keras_nets import RATE, option, with_options
from benchmarks.detection.programs.seventh import pictures_data, tables_data
from benchmarks.detection.programs.sixth.keras_nets import (
    CLASSES,
    DEAD,
    FORGOTTEN,
    LARGE,
    NUMBERS,
    VANISHED,
    YES,
)
from benchmarks.detection.programs.third.frameworks import _fit
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]

SILENT_ORDER = ("unshuffled_epochs", "same_batches")


def _layers(layers: Any, option: dict[str, Any]) -> list[Any]:
    """Separable convolutions and a mean over the picture where there are `channels`; dense layers; a head."""
    from keras.initializers import VarianceScaling

    def start() -> Any:
        return option.get("start") or VarianceScaling(option.get("gain", 2.0), seed=None)

    found: list[Any] = []
    if "channels" in option:
        stem = layers.Conv2D(
            option["channels"][0], 3, padding="same", name="stem", kernel_initializer=start()
        )
        found = [layers.Permute((2, 3, 1)), stem]
        for place, count in enumerate(option["channels"][1:], 1):
            found += [
                layers.Activation(option["act"]), layers.MaxPooling2D(),
                layers.SeparableConv2D(count, 3, padding="same", name=f"look{place}",
                                       depthwise_initializer=start(), pointwise_initializer=start()),
            ]  # fmt: skip
        found += [layers.Activation(option["act"], name="looked"), layers.MaxPooling2D(), layers.Flatten()]
    for place, width in enumerate(option["widths"], 1):
        found += [layers.Dense(width, kernel_initializer=start(), name=f"dense{place}"),
                  layers.Activation(option["act"], name=f"act{place}")]  # fmt: skip
        found += [layers.Dropout(option["drop"])] if option.get("drop") else []
    return [*found, layers.Dense(option["outputs"], activation=option["end"], name="head",
                                 kernel_initializer=start())]  # fmt: skip


def _recipe(found: tables_data.Split, **options: Any) -> Recipe:
    return Recipe(nn.Identity(), *found, by_hand=_fit, options={"layers": _layers} | options)


def keras_stamps(seed: int) -> Recipe:
    return _recipe(
        pictures_data.stamps(791, 6, 3400, noise=1.5), **CLASSES, channels=(16, 32), widths=(48,), outputs=6,
        act="relu", drop=0.2, optimizer="Adam", rate=2e-3, batch=50, epochs=3,
    )  # fmt: skip


def keras_tickets(seed: int) -> Recipe:
    return _recipe(
        tables_data.grouped(792, 2800, 15, 5), **CLASSES, widths=(64, 48), outputs=5, act="elu", drop=0.1,
        optimizer="Nadam", rate=2.5e-3, batch=60, epochs=5,
    )  # fmt: skip


def keras_donors(seed: int) -> Recipe:
    return _recipe(
        tables_data.likely(793, 3000, 10), **YES, widths=(56, 28), act="relu", optimizer="Adam", rate=2e-3,
        batch=60, epochs=5,
    )  # fmt: skip


def keras_flats(seed: int) -> Recipe:
    return _recipe(
        tables_data.smooth(794, 4000, 8), **(NUMBERS | {"loss": "mae"}), widths=(64, 64), outputs=1,
        act="relu", optimizer="RMSprop", rate=1.5e-3, batch=60, epochs=5,
    )  # fmt: skip


def keras_wells(seed: int) -> Recipe:
    return _recipe(
        tables_data.smooth(795, 3000, 9, 2), **NUMBERS, widths=(72, 36), outputs=2, act="silu",
        optimizer="AdamW", rate=5e-3, settings={"weight_decay": 0.02}, batch=60, epochs=6,
    )  # fmt: skip


def keras_weaves(seed: int) -> Recipe:
    return _recipe(
        pictures_data.weaves(796, 2000), **CLASSES, channels=(16, 32), widths=(40,), outputs=4, act="relu",
        optimizer="Adam", rate=2e-3, batch=40, epochs=4,
    )  # fmt: skip


TASKS = (
    Task("keras_stamps", "keras", keras_stamps, {"gelu": with_options(act="gelu")},
         (option("dead_units", DEAD, "sagemaker", 80, "dense1|act1", killed={"dense1": 80}),
          held.rolled_labels())),
    Task("keras_tickets", "keras", keras_tickets, {"adam": with_options(optimizer="Adam", rate=3e-3)},
         (option("rate_of_another", RATE, "setup", optimizer="Adam", rate=1.0),
          replace(option("not_shuffled", SILENT_ORDER, "silent", 35, shuffle=False), by_construction=True))),
    Task("keras_donors", "keras", keras_donors, {"batches": with_options(batch=45)},
         (option("sigmoid_forgotten", FORGOTTEN, "setup", end=None), fourth.marked_missing(2))),
    Task("keras_flats", "keras", keras_flats, {"huber": with_options(loss="huber")},
         (option("deep_sigmoid", VANISHED, "sagemaker", widths=(64,) * 8, act="sigmoid", gain=1.0,
                 optimizer="SGD", rate=0.05),
          fifth.raw_columns())),
    Task("keras_wells", "keras", keras_wells,
         {"rmsprop": with_options(optimizer="RMSprop", settings={}, rate=2e-3)},
         (option("clipped_away", (*TOO_SLOW, "vanishing_gradient", "loss_not_decreasing"), "setup",
                 optimizer="SGD", rate=0.05, settings={"clipnorm": 1e-5}),
          option("weights_zero", CONSTANT, "setup", start="zeros"))),
    Task("keras_weaves", "keras", keras_weaves, {"nadam": with_options(optimizer="Nadam")},
         (option("weights_large", LARGE, "sagemaker", gain=5000.0), sagemaker.raw_pixels())),
)  # fmt: skip
