"""Models and trainings that are put together in less usual ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np

import tdbg_lab as tdbg
from checks.training import callback, data, only, plain, with_and_without
from tdbg_lab.records import RunStatus

if TYPE_CHECKING:
    from pathlib import Path


def fit(model: keras.Model, callbacks: list[Any], x: Any = None, y: Any = None) -> Any:
    known = data(32)
    return model.fit(
        known[0] if x is None else x,
        known[1] if y is None else y,
        batch_size=16,
        epochs=2,
        verbose=0,
        shuffle=False,
        callbacks=callbacks,
    )


def check_models_within_models_have_paths(folder: Path) -> None:
    def make() -> keras.Model:
        inner = keras.Sequential([keras.Input((5,)), keras.layers.Dense(4, name="dense")], name="encoder")
        inputs = keras.Input((5,))
        model = keras.Model(inputs, keras.layers.Dense(3, name="head")(inner(inputs)))
        model.compile("sgd", "mse")
        return model

    own, run = with_and_without(make, fit, folder)
    assert own.handle.problems == []
    names = set(run.tensor_names())
    assert {"encoder/dense/kernel", "gradient/encoder/dense/kernel", "activation/encoder/dense"} <= names
    assert {"head/kernel", "activation/head"} <= names


def check_recurrent_layers_are_seen_once_a_pass(folder: Path) -> None:
    x = np.random.default_rng(0).random((32, 4, 5), dtype=np.float32)

    def make() -> keras.Model:
        layers = keras.layers
        model = keras.Sequential(
            [keras.Input((4, 5)), layers.GRU(6, name="memory"), layers.Dense(3, name="head")]
        )
        model.compile("sgd", "mse")
        return model

    own, run = with_and_without(make, lambda model, callbacks: fit(model, callbacks, x), folder)
    assert own.handle.problems == []
    names = set(run.tensor_names())
    assert {"activation/memory", "activation/head"} <= names
    assert any(name.startswith("gradient/memory/") and name.endswith("kernel") for name in names)
    keys = {key.name: key for key in run.tensors()}
    assert keys["activation/memory"].shape == (16, 6)


def check_a_layer_called_more_often_than_is_recorded_is_told(folder: Path) -> None:
    def make() -> keras.Model:
        inputs = keras.Input((5,))
        hidden, shared = inputs, keras.layers.Dense(5, name="shared")
        for _ in range(66):
            hidden = shared(hidden)
        model = keras.Model(inputs, keras.layers.Dense(3, name="head")(hidden))
        model.compile("sgd", "mse")
        return model

    own, run = with_and_without(make, fit, folder)
    names = [name for name in run.tensor_names() if name.startswith("activation/shared")]
    assert len(names) == 64
    (told,) = own.handle.problems
    assert "only the first 64 values of activation/shared in a step are recorded" in told.message


def check_several_outputs_have_several_losses(folder: Path) -> None:
    x, y = data(32)

    def make() -> keras.Model:
        inputs = keras.Input((5,))
        hidden = keras.layers.Dense(4, activation="relu", name="body")(inputs)
        outputs = {
            "left": keras.layers.Dense(3, name="left")(hidden),
            "right": keras.layers.Dense(1, name="right")(hidden),
        }
        model = keras.Model(inputs, outputs)
        model.compile("sgd", {"left": "mse", "right": "mae"}, loss_weights={"left": 1.0, "right": 0.5})
        return model

    targets = {"left": y, "right": y[:, :1]}
    own, run = with_and_without(make, lambda model, callbacks: fit(model, callbacks, x, targets), folder)
    assert own.handle.problems == []
    names = set(run.tensor_names())
    assert {"activation/left", "activation/right", "gradient/body/kernel", "loss/total"} <= names
    assert {"epoch/left_loss", "epoch/right_loss"} <= names


@only("tensorflow", "jax")  # torch takes single steps only
def check_steps_in_one_call_are_counted_and_said(folder: Path) -> None:
    def make() -> keras.Model:
        model = plain()
        model.compile("sgd", "mse", steps_per_execution=2)
        return model

    own, run = with_and_without(make, fit, folder, save_every=2)
    assert run.last_step == 3
    assert list(run.steps(tensor="gradient/first/kernel")) == [0, 2]
    assert any("steps_per_execution" in str(one) for one in own.handle.problems)


@only("tensorflow", "jax")
def check_a_distance_is_chosen_from_whole_calls(folder: Path) -> None:
    """It grows until there are calls of which no step is saved."""
    x, y = data(192)

    def make() -> keras.Model:
        model = plain()
        model.compile("sgd", "mse", steps_per_execution=4)
        return model

    def train(model: keras.Model, callbacks: list[Any]) -> Any:
        return model.fit(x, y, batch_size=4, verbose=0, shuffle=False, callbacks=callbacks)

    own, run = with_and_without(make, train, folder, save_every="auto")
    assert list(run.scalars("tdbg/save_every").steps) == [16, 32]
    assert list(run.scalars("tdbg/save_every").values) == [4, 8]
    assert own.handle.save_every == 8
    assert list(run.steps(tensor="gradient/first/kernel")) == [*range(0, 33, 4), 40]


def check_a_step_that_raises_ends_the_run_at_once(folder: Path) -> None:
    own = callback(folder)
    model = plain()
    model.compile("sgd", "mse")
    fit(model, [own])
    wrong = np.zeros((16, 2), np.float32)  # the loss wants three columns
    try:
        model.fit(data(16)[0], wrong, batch_size=16, verbose=0, callbacks=[own])
    except Exception as error:
        raised = type(error).__name__
    run = tdbg.open_run(own.run_path)
    assert run.status is RunStatus.FAILED
    assert raised in str(run.info.error)
    if keras.backend.backend() == "jax":
        return  # Keras itself has lost the model's state with the step
    fit(model, [own])  # the same run goes on
    run = tdbg.open_run(own.run_path)
    assert run.status is RunStatus.FINISHED
    assert len(list(run.steps(mode="train"))) >= 8


def check_another_callback_that_raises_ends_the_run_around_it(folder: Path) -> None:
    class Broken(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            raise KeyboardInterrupt

    model = plain()
    model.compile("sgd", "mse")
    own = callback(folder)
    try:
        with own:
            fit(model, [own, Broken()])
    except KeyboardInterrupt:
        run = tdbg.open_run(own.run_path)
    assert run.status is RunStatus.STOPPED
    assert run.info.error == "interrupted"


@only("tensorflow")
def check_replicas_train_the_same_and_what_is_not_seen_is_said(folder: Path) -> None:
    import tensorflow as tf

    devices = [one.name.removeprefix("/device:") for one in tf.config.list_logical_devices("CPU")]

    def make() -> keras.Model:
        with tf.distribute.MirroredStrategy(devices).scope():
            model = plain()
            model.compile("sgd", "mse")
        return model

    own, run = with_and_without(make, fit, folder)
    assert list(run.steps(mode="train")) == [0, 1, 2, 3]
    assert {"first/kernel", "loss/total"} <= set(run.tensor_names())
    assert any(f"{len(devices)} replicas" in str(one) for one in own.handle.problems)


@only("tensorflow")
def check_a_model_that_its_own_step_never_calls_is_traced_once(folder: Path) -> None:
    import tensorflow as tf

    traced: list[int] = []

    class Game(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.player, self.critic = plain(), plain()
            self.opt_p, self.opt_c = keras.optimizers.SGD(0.1), keras.optimizers.SGD(0.2)

        def train_step(self, batch: Any) -> dict[str, Any]:
            traced.append(len(traced))
            for model, optimizer in ((self.player, self.opt_p), (self.critic, self.opt_c)):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((model(batch[0], training=True) - batch[1]) ** 2)
                gradients = tape.gradient(loss, model.trainable_variables)
                optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return {"game": loss}

    def make() -> keras.Model:
        model = Game()
        model.compile()
        traced.clear()
        return model

    own, run = with_and_without(make, fit, folder)
    assert own.handle.problems == []
    assert run.last_step == 3
    assert len(traced) <= 3  # to build it, to look at it, and by Keras
    rates = {name for name in run.tensor_names() if name.startswith("optimizer/lr/")}
    assert rates == {"optimizer/lr/opt_p.0", "optimizer/lr/opt_c.0"}


@only("torch")
def check_a_step_that_averages_its_loss_itself_has_the_loss_of_each_batch(folder: Path) -> None:
    import torch

    losses: list[float] = []

    class Averaging(keras.Sequential):  # type: ignore[misc]
        def __init__(self, layers: list[Any]) -> None:
            super().__init__(layers)
            self.average = keras.metrics.Mean(name="loss")

        def train_step(self, batch: Any) -> dict[str, Any]:
            self.zero_grad()
            loss = self.compute_loss(y=batch[1], y_pred=self(batch[0], training=True))
            loss.backward()
            with torch.no_grad():
                self.optimizer.apply([one.value.grad for one in self.trainable_weights])
            self.average.update_state(loss)
            losses.append(float(loss.detach()))
            return {"loss": self.average.result()}

    model = Averaging([keras.Input((5,)), keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    own = callback(folder, save_every=2)
    fit(model, [own])
    found = tdbg.open_run(own.run_path).scalars("loss/total", mode="train").values
    np.testing.assert_allclose(found, losses, rtol=1e-5)
