"""Keras in the eighth set: dense nets and convolutions by its own `fit`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from benchmarks.detection.faults import sagemaker, second
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.faults import sixth_tables as sixth
from benchmarks.detection.program import Task
from benchmarks.detection.programs.eighth import pictures_data, tables_data
from benchmarks.detection.programs.fifth.frameworks import ONE_ANSWER, SLOW
from benchmarks.detection.programs.keras_nets import RATE, option, with_options
from benchmarks.detection.programs.seventh.keras_nets import SILENT_ORDER
from benchmarks.detection.programs.sixth.keras_nets import (
    CLASSES,
    DEAD,
    FORGOTTEN,
    LARGE,
    NUMBERS,
    YES,
    _recipe,
)
from benchmarks.detection.programs.third.frameworks import _fit
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def _looking(layers: Any, option: dict[str, Any]) -> list[Any]:
    """Convolutions of two steps instead of pooling, and a dense layer."""
    found: list[Any] = [layers.Permute((2, 3, 1))]
    for place, count in enumerate(option["channels"], 1):
        found += [
            layers.Conv2D(count, 3, strides=2, padding="same", name=f"look{place}"),
            layers.Activation(option["act"], name=f"look{place}_act"),
        ]  # fmt: skip
    return [
        *found, layers.Flatten(), layers.Dense(48, name="mix"),
        layers.Activation(option["act"], name="mix_act"), layers.Dropout(0.2),
        layers.Dense(option["outputs"], activation=option["end"], name="head"),
    ]  # fmt: skip


def with_logits(wanted: Any, told: Any) -> Any:
    """The loss of classes for a head without a softmax."""
    from keras.losses import sparse_categorical_crossentropy

    return sparse_categorical_crossentropy(wanted, told, from_logits=True)


def keras_flags(seed: int) -> Recipe:
    options = CLASSES | {"layers": _looking, "channels": (16, 32), "outputs": 6, "act": "relu"}
    options |= {"optimizer": "Adam", "rate": 2e-3, "batch": 50, "epochs": 4}
    return Recipe(nn.Identity(), *pictures_data.flags(861, 2800), by_hand=_fit, options=options)


def keras_invoices(seed: int) -> Recipe:
    return _recipe(
        tables_data.sorts(862, 3200, 14, 6), **CLASSES, widths=(80, 40), outputs=6, act="relu",
        norm="BatchNormalization", optimizer="Adam", rate=4e-3, batch=60, epochs=5,
    )  # fmt: skip


def keras_renewals(seed: int) -> Recipe:
    return _recipe(
        tables_data.cases(863, 3200, 12, 3), **YES, widths=(64, 32), act="gelu", drop=0.1,
        optimizer="AdamW", rate=3e-3, settings={"weight_decay": 0.02}, batch=64, epochs=5,
    )  # fmt: skip


def keras_panels(seed: int) -> Recipe:
    return _recipe(
        tables_data.readings(864, 3200, 10, 0, 2), **NUMBERS, widths=(72, 48), outputs=2, act="relu",
        optimizer="Nadam", rate=2e-3, batch=60, epochs=5,
    )  # fmt: skip


def keras_queues(seed: int) -> Recipe:
    """Counts, by the logarithm of how many are to be expected."""
    return _recipe(
        tables_data.tallies(865, 3200, 11), **(NUMBERS | {"loss": "poisson", "end": "exponential"}),
        widths=(48, 32), outputs=1, act="elu", optimizer="Adamax", rate=5e-3, batch=64, epochs=5,
    )  # fmt: skip


def keras_grapes(seed: int) -> Recipe:
    return _recipe(
        tables_data.sorts(866, 3200, 11, 4), **CLASSES, widths=(56, 56), outputs=4, act="tanh", start=None,
        optimizer="SGD", rate=0.03, settings={"momentum": 0.9, "nesterov": True}, batch=60, epochs=5,
    )  # fmt: skip


TASKS = (
    Task("keras_flags", "keras", keras_flags, {"silu": with_options(act="silu")},
         (option("dead_units", DEAD, "sagemaker", 80, "mix|mix_act", killed={"mix": 80}),
          sagemaker.raw_pixels())),
    Task("keras_invoices", "keras", keras_invoices, {"nadam": with_options(optimizer="Nadam")},
         (option("rate_explodes", RATE, "setup", optimizer="SGD", rate=1e4),
          seventh.sorted_labels())),
    Task("keras_renewals", "keras", keras_renewals, {"batches": with_options(batch=48)},
         (option("sigmoid_forgotten", FORGOTTEN, "setup", end=None),
          replace(option("not_shuffled", SILENT_ORDER, "silent", 38, shuffle=False), by_construction=True))),
    Task("keras_panels", "keras", keras_panels, {"adam": with_options(optimizer="Adam")},
         (option("squashed_output", (*ONE_ANSWER, "output_range", "labels_out_of_range"), "setup",
                 end="sigmoid"),
          second.one_large_column(1, 3e4))),
    Task("keras_queues", "keras", keras_queues, {"adam": with_options(optimizer="Adam", rate=2e-3)},
         (option("rate_tiny", SLOW, "sagemaker", rate=1e-7), sixth.missing_targets())),
    Task("keras_grapes", "keras", keras_grapes,
         {"adam": with_options(optimizer="Adam", rate=4e-3, settings={})},
         (option("weights_large", LARGE, "sagemaker", gain=2500.0),
          option("softmax_and_logits", ("redundant_softmax", *ONE_ANSWER), "setup", loss=with_logits))),
)  # fmt: skip
