"""Keras in the sixth set: dense and convolutional nets by its own `fit`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import held, sagemaker
from benchmarks.detection.program import Task
from benchmarks.detection.programs.fifth.frameworks import CONSTANT, SLOW, _told_rightly
from benchmarks.detection.programs.keras_nets import RATE, option, with_options
from benchmarks.detection.programs.sixth import pictures_data, tables_data
from benchmarks.detection.programs.third.frameworks import _fit, _share
from benchmarks.detection.recipe import Recipe, fit_of

__all__ = ["TASKS"]

DEAD = ("dead_relu", "dead_units", "all_zero")
FORGOTTEN = ("missing_softmax", "redundant_softmax", "output_loss_mismatch", "wrong_loss", "loss_negative",
             "softmax")  # fmt: skip
VANISHED = ("vanishing_gradient", "poor_weight_initialization", "loss_not_decreasing")
LARGE = ("saturated_activation", "poor_weight_initialization", "dead_units", "vanishing_gradient",
         "exploding_tensor")  # fmt: skip


def _layers(layers: Any, option: dict[str, Any]) -> list[Any]:
    """Convolutions with pooling where `channels` are asked for, dense layers of the `widths`, and a head."""
    from keras.initializers import VarianceScaling

    def start() -> Any:
        return option.get("start") or VarianceScaling(option.get("gain", 1.0), seed=None)

    act, found = option["act"], []
    if "channels" in option:
        found.append(layers.Reshape((14, 14, 1)))
        for place, count in enumerate(option["channels"], 1):
            found += [
                layers.Conv2D(count, 3, padding="same", kernel_initializer=start(), name=f"conv{place}"),
                layers.Activation(act), layers.MaxPooling2D(),
            ]  # fmt: skip
        found.append(layers.Flatten())
    for place, width in enumerate(option["widths"], 1):
        found.append(layers.Dense(width, kernel_initializer=start(), name=f"dense{place}"))
        found += [getattr(layers, option["norm"])()] if "norm" in option else []
        found.append(layers.Activation(act, name=f"act{place}"))
        found += [layers.Dropout(option["drop"])] if "drop" in option else []
    return [*found, layers.Dense(option["outputs"], activation=option["end"], name="head",
                                 kernel_initializer=start())]  # fmt: skip


def _recipe(found: tables_data.Split, **options: Any) -> Recipe:
    return Recipe(nn.Identity(), *found, by_hand=_fit, options={"layers": _layers} | options)


CLASSES = {"end": "softmax", "loss": "sparse_categorical_crossentropy", "score": _share}
YES = {"end": "sigmoid", "loss": "binary_crossentropy", "score": _told_rightly, "outputs": 1}
NUMBERS = {"end": None, "loss": "mse", "score": fit_of}


def keras_galaxies(seed: int) -> Recipe:
    return _recipe(
        pictures_data.galaxies(643), **CLASSES, channels=(12, 24), widths=(32,), outputs=4, act="relu",
        start="he_normal", optimizer="Adam", rate=2e-3, batch=50, epochs=5,
    )  # fmt: skip


def keras_claims(seed: int) -> Recipe:
    return _recipe(
        tables_data.chances(711, 2800, 11, 3), **YES, widths=(48, 24), act="relu", drop=0.1,
        start="he_uniform", optimizer="RMSprop", rate=1.5e-3, batch=50, epochs=5,
    )  # fmt: skip


def keras_yields(seed: int) -> Recipe:
    return _recipe(
        tables_data.amounts(712, 2800, 9, 3), **NUMBERS, widths=(64, 32), outputs=1, act="relu",
        start="he_normal", optimizer="Adam", rate=2e-3, batch=60, epochs=5,
    )  # fmt: skip


def keras_machines(seed: int) -> Recipe:
    return _recipe(
        tables_data.classes(713, 2800, 20, 0, 4), **CLASSES, widths=(64, 32), outputs=4, act="relu",
        norm="BatchNormalization", start="he_normal", optimizer="SGD", rate=0.05,
        settings={"momentum": 0.9, "nesterov": True}, batch=70, epochs=5,
    )  # fmt: skip


def keras_loads(seed: int) -> Recipe:
    return _recipe(
        tables_data.amounts(714, 2800, 8, 4, 2), **(NUMBERS | {"loss": "huber"}), widths=(48, 48), outputs=2,
        act="gelu", norm="LayerNormalization", optimizer="AdamW", rate=4e-3, settings={"weight_decay": 0.01},
        batch=64, epochs=5,
    )  # fmt: skip


def keras_leaves(seed: int) -> Recipe:
    return _recipe(
        pictures_data.leaves(645, (0, 3, 4, 5)), **CLASSES, channels=(12, 24), widths=(40,), outputs=4,
        act="tanh", optimizer="Nadam", rate=2e-3, batch=50, epochs=5,
    )  # fmt: skip


TASKS = (
    Task("keras_galaxies", "keras", keras_galaxies, {"elu": with_options(act="elu")},
         (option("softmax_forgotten", FORGOTTEN, "setup", end=None),
          replace(option("not_shuffled", ("unshuffled_epochs", "same_batches"), "silent", 33, shuffle=False),
                  by_construction=True))),
    Task("keras_claims", "keras", keras_claims, {"nadam": with_options(optimizer="Nadam", rate=2e-3)},
         (held.rolled_labels(),
          option("deep_sigmoid", VANISHED, "sagemaker", widths=(48,) * 8, act="sigmoid", drop=0.0,
                 optimizer="SGD", rate=0.05))),
    Task("keras_yields", "keras", keras_yields, {"batches": with_options(batch=40)},
         (option("rate_explodes", RATE, "sagemaker", optimizer="SGD", rate=1e4), fifth.raw_columns())),
    Task("keras_machines", "keras", keras_machines,
         {"adam": with_options(optimizer="Adam", settings={}, rate=3e-3)},
         (option("dead_units", DEAD, "sagemaker", 80, "dense2|act2", killed={"dense2": 80}),
          sagemaker.unbalanced(0.97, 0))),
    Task("keras_loads", "keras", keras_loads,
         {"rmsprop": with_options(optimizer="RMSprop", settings={}, rate=2e-3)},
         (option("weights_zero", CONSTANT, "setup", start="zeros"), fifth.missing_values(2))),
    Task("keras_leaves", "keras", keras_leaves, {"batches": with_options(batch=32, rate=1.5e-3)},
         (option("rate_tiny", SLOW, "sagemaker", rate=1e-7),
          option("weights_large", LARGE, "sagemaker", gain=2500.0))),
)  # fmt: skip
