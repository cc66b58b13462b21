"""Keras on the PyTorch backend: its own `fit`, its callback."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from torch import nn

from benchmarks.detection.program import Fault, Task
from benchmarks.detection.programs import data
from benchmarks.detection.recipe import Recipe

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TASKS"]


def _fit(recipe: Recipe, path: Path | None, seed: int) -> float:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    import tdbg_lab as tdbg
    from benchmarks.detection.loop import QUIET

    keras.utils.set_random_seed(seed)
    option = recipe.options
    (x, y), (held_x, held_y) = (tuple(one.numpy() for one in pair) for pair in (recipe.train, recipe.held))
    layers: list[Any] = [keras.Input(x.shape[1:])]
    for name in option.get("hidden", ("first", "second")):
        layers.append(
            keras.layers.Dense(48, name=name, kernel_initializer=option.get("start", "glorot_uniform"))
        )
        layers.append(keras.layers.Activation(option.get("activation", "relu"), name=f"{name}_act"))
    layers.append(keras.layers.Dense(int(y.max()) + 1, activation=option.get("end"), name="head"))
    model = keras.Sequential(layers)
    for name in option.get("frozen", ()):
        model.get_layer(name).trainable = False
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=option.get("from_logits", True))
    model.compile(keras.optimizers.get(option.get("optimizer", "adam")), loss, metrics=["accuracy"])
    if "rate" in option:
        model.optimizer.learning_rate = option["rate"]
    callbacks: list[Any] = (
        [] if path is None else [tdbg.KerasCallback(path, save_every=recipe.save_every, **QUIET)]
    )
    for name, step in option.get("killed", {}).items():
        callbacks.insert(0, _killer(keras, model.get_layer(name), step))
    model.fit(x, y, batch_size=32, epochs=option.get("epochs", 6), verbose=0, callbacks=callbacks,
              validation_data=(held_x, held_y))  # fmt: skip
    recipe.steps = int(model.optimizer.iterations)
    return float((model.predict(held_x, verbose=0).argmax(1) == held_y).mean())


def _killer(keras: Any, layer: Any, step: int) -> Any:
    class Kill(keras.callbacks.Callback):
        seen = -1

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.seen += 1
            if self.seen == step:
                kernel, bias = layer.get_weights()
                layer.set_weights([kernel, bias * 0 - 100])

    return Kill()


def keras_digits(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.digits(), by_hand=_fit)


def keras_rings(seed: int) -> Recipe:
    return Recipe(nn.Identity(), *data.rings(), by_hand=_fit, options={"epochs": 8})


def option(
    name: str, rules: tuple[str, ...], group: str, trigger: int = 0, where: str = "", **options: Any
) -> Fault:
    """Other arguments of the layers or of compile."""

    def change(recipe: Recipe) -> None:
        recipe.options |= options

    return Fault(name, change, rules, group, trigger, where)


def with_options(**options: Any):
    """A harmless variant."""

    def change(recipe: Recipe) -> None:
        recipe.options |= options

    return change


RATE = ("exploding_tensor", "loss_diverging", "learning_rate_too_high", "loss_not_decreasing",
        "weight_update_ratio", "learning_rate_scale", "dead_relu", "loss_oscillating")  # fmt: skip
TASKS = (
    Task("keras_digits", "keras", keras_digits,
         {"sgd": with_options(optimizer="sgd", rate=0.1, epochs=8), "tanh": with_options(activation="tanh")},
         (option("rate_explodes", RATE, "sagemaker", optimizer="sgd", rate=1e6),
          option("dead_units", ("dead_relu", "dead_units", "all_zero"), "sagemaker", 50, "second",
                 killed={"second": 50}),
          option("symmetric", ("symmetric_initialisation", "poor_weight_initialization"), "setup",
                 start="zeros"))),
    Task("keras_rings", "keras", keras_rings,
         {"gelu": with_options(activation="gelu")},
         (option("deep_sigmoid", ("vanishing_gradient", "poor_weight_initialization", "loss_not_decreasing"),
                 "sagemaker", activation="sigmoid", hidden=tuple("abcdefgh"), optimizer="sgd", rate=0.05,
                 epochs=10),
          option("rate_tiny", ("loss_not_decreasing", "weight_update_ratio", "learning_rate_too_low",
                               "learning_rate_scale"), "sagemaker", rate=1e-8, epochs=8))),
)  # fmt: skip
