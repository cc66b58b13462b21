"""What a training loop does is noted, and rules on silent errors speak of it as they do of PyTorch's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np

import tdbg_lab as tdbg
from checks.labels import SPARSE, classifier, samples
from checks.training import callback, only

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SILENT = (
    *("replaced_weights", "same_batches", "unshuffled_epochs"),
    *("training_in_eval_mode", "evaluation_in_train_mode", "optimizer_settings"),
)
STEPS = 12
"""Batches of an epoch."""


def found(
    folder: Path,
    model: keras.Model,
    *others: Any,
    save_every: int = 1,
    epochs: int = 3,
    optimizer: Any = "adam",
    **options: Any,
) -> dict[str, str]:
    """What rules on silent errors say."""
    x, y = samples(16 * STEPS)
    own = callback(folder, save_every=save_every)
    model.compile(optimizer, SPARSE(from_logits=True))
    chosen = {"batch_size": 16, "epochs": epochs, "verbose": 0, "validation_data": (x[:32], y[:32])}
    model.fit(x, y, callbacks=[*others, own], **chosen | options)
    assert own.handle.problems == []
    return {one.rule: one.message for one in tdbg.run_rules(own.run_path, SILENT)}


def assert_silent(told: dict[str, str]) -> None:
    assert told == {}, told


class Between(keras.callbacks.Callback):
    """Changes the weights of the first layer between two epochs."""

    def __init__(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__()
        self.change = change

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == 1:
            kernel, bias = self.model.layers[0].get_weights()
            self.model.layers[0].set_weights([self.change(kernel), bias])


def check_weights_that_are_set_anew_are_told(folder: Path) -> None:
    def anew(kernel: np.ndarray) -> np.ndarray:
        return np.random.default_rng(1).normal(size=kernel.shape, scale=0.3)

    message = found(folder / "anew", classifier(), Between(anew))["replaced_weights"]
    assert f"before step {STEPS}" in message
    assert_silent(found(folder / "same", classifier(), Between(lambda kernel: kernel)))
    assert_silent(found(folder / "near", classifier(), Between(lambda kernel: 0.9 * kernel)))


@only("torch", "jax")
def check_weights_that_are_set_anew_between_saved_steps_are_told(folder: Path) -> None:
    def anew(kernel: np.ndarray) -> np.ndarray:
        return np.random.default_rng(1).normal(size=kernel.shape, scale=0.3)

    message = found(folder, classifier(), Between(anew), save_every=7)["replaced_weights"]
    assert f"before step {STEPS}" in message


@only("torch", "jax")
def check_the_same_order_of_each_epoch_is_told(folder: Path) -> None:
    assert set(found(folder / "same", classifier(), shuffle=False)) == {"unshuffled_epochs"}
    assert_silent(found(folder / "other", classifier(), shuffle=True))


@only("torch", "jax")
def check_the_order_is_seen_at_steps_that_are_not_saved(folder: Path) -> None:
    told = found(folder / "same", classifier(), shuffle=False, save_every=7)
    assert f"{STEPS} batches before" in told["unshuffled_epochs"]


@only("tensorflow")
def check_nothing_is_told_of_the_order(folder: Path) -> None:
    assert_silent(found(folder, classifier(), shuffle=False))


class Plain(keras.Model):
    """Has dropout, and takes no argument that says when it is training: Keras then never trains it so."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.drop, self.last = (
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(4),
        )

    def call(self, x: Any) -> Any:
        return self.last(self.drop(self.first(x)))


class Told(Plain):
    def call(self, x: Any, training: Any = None) -> Any:
        return self.last(self.drop(self.first(x), training=training))


def check_dropout_that_is_never_on_is_told(folder: Path) -> None:
    assert set(found(folder / "plain", Plain(), epochs=1)) == {"training_in_eval_mode"}
    advice = tdbg.run_rules(folder / "plain" / "run", ["training_in_eval_mode"])[0].advice
    assert "training=True" in advice[0]
    assert_silent(found(folder / "told", Told(), epochs=1))


def check_frozen_normalisation_in_inference_mode_is_let_be(folder: Path) -> None:
    base = keras.Sequential(
        [
            keras.Input((8,)),
            keras.layers.Dense(8),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.2),
        ]
    )
    base.trainable = False
    inputs = keras.Input((8,))
    model = keras.Model(inputs, keras.layers.Dense(4)(base(inputs, training=False)))
    assert_silent(found(folder, model, epochs=1))


class Random(Told):
    """Evaluates with dropout."""

    def test_step(self, data: Any) -> Any:
        x, y = data
        loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
        return {"loss": loss}


@only("torch", "tensorflow")
def check_evaluation_with_dropout_is_told(folder: Path) -> None:
    assert set(found(folder, Random(), epochs=2)) == {"evaluation_in_train_mode"}


def check_settings_that_nobody_trains_with_are_told(folder: Path) -> None:
    optimizers = keras.optimizers
    for name, optimizer, words in (
        ("betas", optimizers.Adam(beta_1=0.999, beta_2=0.9), "Adam has betas (0.999, 0.9)"),
        ("momentum", optimizers.SGD(1e-4, momentum=1.0), "SGD has a momentum of 1"),
        ("decay", optimizers.AdamW(0.01, weight_decay=2.0), "AdamW takes 2 % off"),
        (
            "scaled",
            optimizers.LossScaleOptimizer(optimizers.SGD(0.1, weight_decay=0.5)),
            "SGD takes 5 % off",
        ),
    ):
        assert (
            words in found(folder / name, classifier(), epochs=1, optimizer=optimizer)["optimizer_settings"]
        )
    usual = optimizers.SGD(0.1, momentum=0.9, weight_decay=5e-3, nesterov=True)
    assert_silent(found(folder / "usual", classifier(), epochs=1, optimizer=usual))
