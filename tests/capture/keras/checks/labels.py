"""What losses compare and what enters a model is noted, and rules speak of it as they do of PyTorch's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np

import tdbg_lab as tdbg
from checks.training import callback, only
from tdbg_lab.records import Kind, Severity

if TYPE_CHECKING:
    from pathlib import Path

CLASSES = 4
SPARSE = keras.losses.SparseCategoricalCrossentropy


def samples(count: int = 256) -> tuple[np.ndarray, np.ndarray]:
    """Four classes that two of the numbers tell."""
    x = np.random.default_rng(0).normal(size=(count, 8)).astype(np.float32)
    return x, (x[:, 0] > 0) + 2 * (x[:, 1] > 0).astype(np.int64)


def classifier(end: str | None = None, *before: Any) -> keras.Model:
    hidden = keras.layers.Dense(16, activation="relu")
    return keras.Sequential([keras.Input((8,)), *before, hidden, keras.layers.Dense(CLASSES, activation=end)])


def alarms(folder: Path, model: keras.Model, x: Any, y: Any, *, epochs: int = 3) -> dict[str, str]:
    """Rules that warn of a training, and what they say."""
    own = callback(folder, save_every=2)
    model.fit(x, y, batch_size=32, epochs=epochs, verbose=0, validation_data=(x, y), callbacks=[own])
    assert own.handle.problems == []
    found = tdbg.run_rules(own.run_path)
    return {one.rule: one.message for one in found if one.severity is not Severity.NOTICE}


def check_facts_are_those_of_the_batch(folder: Path) -> None:
    x, y = samples(32)
    model = classifier()
    model.compile(keras.optimizers.SGD(0.0), SPARSE(from_logits=True))
    told = model.predict(x, verbose=0)
    alarms(folder, model, x, y, epochs=2)
    run = tdbg.open_run(folder / "run")
    for mode in ("train", "eval"):
        last = {
            name: run.scalars(name, mode=mode).values[-1]
            for name in run.tensor_names(kind=Kind.CHECK)
            if "/total/" in name
        }
        base = "check/loss/total/"
        assert np.isclose(last[base + "hits"], (told.argmax(1) == y).mean())
        assert np.isclose(last[base + "prediction_max"], told.max(), atol=1e-5)
        assert (last[base + "target_max"], last[base + "classes"]) == (CLASSES - 1, CLASSES)
    assert np.isclose(run.scalars("check/input_max").values[0], x.max())


def check_facts_can_be_turned_off(folder: Path) -> None:
    x, y = samples(32)
    model = classifier()
    model.compile("sgd", SPARSE(from_logits=True))
    own = callback(folder, config={"checks": False})
    model.fit(x, y, verbose=0, callbacks=[own])
    assert own.handle.problems == []
    assert tdbg.open_run(own.run_path).tensor_names(kind=Kind.CHECK) == []


def check_healthy_labels_raise_no_alarm(folder: Path) -> None:
    x, y = samples()
    model = classifier()
    model.compile("adam", SPARSE(from_logits=True))
    assert alarms(folder, model, x, y) == {}


def check_probabilities_raise_no_alarm(folder: Path) -> None:
    x, y = samples()
    model = classifier("softmax")
    model.compile("adam", "categorical_crossentropy")
    assert alarms(folder, model, x, np.eye(CLASSES)[y]) == {}


def check_several_outputs_are_told_apart(folder: Path) -> None:
    x, y = samples()
    inputs = keras.Input((8,))
    hidden = keras.layers.Dense(16, activation="relu")(inputs)
    outputs = {
        "sort": keras.layers.Dense(CLASSES, activation="softmax", name="sort")(hidden),
        "size": keras.layers.Dense(1, name="size")(hidden),
    }
    model = keras.Model(inputs, outputs)
    model.compile("adam", {"sort": "sparse_categorical_crossentropy", "size": "mse"})
    assert alarms(folder, model, x, {"sort": y, "size": x[:, :2].sum(1)}) == {}
    names = tdbg.open_run(folder / "run").tensor_names(kind=Kind.CHECK)
    assert {"check/loss/sort/hits", "check/loss/size/correlation"} <= set(names)


@only("torch", "jax")
def check_a_second_softmax_is_told(folder: Path) -> None:
    x, y = samples()
    model = classifier("softmax")
    model.compile("adam", SPARSE(from_logits=True))
    assert "second one" in alarms(folder, model, x, y)["wrong_output"]


@only("tensorflow")
def check_a_second_softmax_that_keras_leaves_out_is_let_be(folder: Path) -> None:
    x, y = samples()
    model = classifier("softmax")
    model.compile("adam", SPARSE(from_logits=True))
    assert "wrong_output" not in alarms(folder, model, x, y)


def check_a_missing_softmax_is_told(folder: Path) -> None:
    x, y = samples()
    model = classifier()
    model.compile("adam", "sparse_categorical_crossentropy")
    assert "softmax is missing" in alarms(folder, model, x, y)["wrong_output"]


def check_a_missing_sigmoid_is_told(folder: Path) -> None:
    x, y = samples()
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16), keras.layers.Dense(1)])
    model.compile("adam", "binary_crossentropy")
    assert "sigmoid is missing" in alarms(folder, model, x, y % 2)["wrong_output"]


def check_a_rectified_output_is_told(folder: Path) -> None:
    x, _ = samples()
    keras.utils.set_random_seed(0)
    last = keras.layers.Dense(1, activation="relu")
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="relu"), last])
    model.compile("adam", "mse")
    found = alarms(folder, model, x, x[:, 0] + x[:, 1], epochs=5)
    assert "ReLU" in found.get("label_range", ""), found


@only("jax")
def check_classes_beyond_the_outputs_are_told(folder: Path) -> None:
    x, y = samples()
    model = classifier()
    model.compile("adam", SPARSE(from_logits=True))
    assert "count from 0" in alarms(folder, model, x, y + 1)["label_range"]


@only("torch")  # hundreds of steps, of whose facts the other checks tell on each backend
def check_shuffled_labels_are_told(folder: Path) -> None:
    x, y = samples(8192)
    keras.utils.set_random_seed(0)
    model = classifier()
    model.compile("adam", SPARSE(from_logits=True))
    assert "unrelated_labels" in alarms(folder, model, x, np.random.default_rng(1).permutation(y), epochs=1)


@only("torch")  # hundreds of steps, of whose facts the other checks tell on each backend
def check_classes_that_are_hardly_there_are_told_when_they_are_given_up(folder: Path) -> None:
    x, y = samples(4096)
    rows = [*np.resize(np.flatnonzero(y == 0), 2000), *np.flatnonzero(y != 0)[:50]]
    rows = np.random.default_rng(1).permutation(rows)
    for name, rate in (("given up", 1e-4), ("learnt", 0.05)):
        keras.utils.set_random_seed(0)
        model = classifier()
        model.compile(keras.optimizers.Adam(rate), SPARSE(from_logits=True))
        model.layers[-1].bias.assign([4.0, 0.0, 0.0, 0.0])
        own = callback(folder / name, save_every=2)
        model.fit(
            x[rows], y[rows], epochs=2, verbose=0, validation_data=(x[3000:], y[3000:]), callbacks=[own]
        )
        found = [one.severity for one in tdbg.run_rules(own.run_path, ["class_imbalance"])]
        assert found == [Severity.WARNING] * (name == "given up"), (name, found)


def check_inputs_that_are_not_normalised_are_told(folder: Path) -> None:
    x, y = samples()
    x = (x - x.min()) * 40
    model = classifier()
    model.compile("adam", SPARSE(from_logits=True))
    assert "unscaled_inputs" in alarms(folder / "raw", model, x, y)
    model = classifier(None, keras.layers.Rescaling(1 / 40))
    model.compile("adam", SPARSE(from_logits=True))
    assert "unscaled_inputs" not in alarms(folder / "scaled", model, x, y)


def check_padding_that_makes_up_nearly_all_tokens_is_told(folder: Path) -> None:
    random = np.random.default_rng(0)
    for name, words, told in (("padded", 1, True), ("full", 12, False)):
        x = random.integers(1, 40, (256, 12))
        y = (x[:, 0] > 20).astype("int32")
        x[:, words:] = 0
        model = keras.Sequential(
            [keras.layers.Embedding(40, 8), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(2)]
        )
        own = callback(folder / name, save_every=1)
        model.compile("adam", SPARSE(from_logits=True))
        model.fit(x, y, batch_size=16, epochs=2, verbose=0, callbacks=[own])
        assert own.handle.problems == []
        found = [one.rule for one in tdbg.run_rules(own.run_path, ["nlp_sequence_ratio", "unscaled_inputs"])]
        assert found == ["nlp_sequence_ratio"] * told, (name, found)


def check_a_train_step_of_ones_own_is_seen(folder: Path) -> None:
    x, y = samples()
    own = callback(folder, save_every=2)
    model = Stepped(classifier())
    model.compile("adam", SPARSE(from_logits=True))
    model.fit(x, y, verbose=0, callbacks=[own])
    assert own.handle.problems == []
    assert len(tdbg.open_run(own.run_path).scalars("check/loss/total/hits").values) > 2


def check_layers_behind_a_stopped_gradient_are_told(folder: Path) -> None:
    x, y = samples()
    for name, stopped in (("cut", Stopped()), ("whole", keras.layers.Activation("linear"))):
        first = keras.layers.Dense(16, activation="tanh", name="first")
        model = classifier(None, first, stopped)
        model.compile("adam", SPARSE(from_logits=True))
        found = alarms(folder / name, model, x, y)
        assert ("parameters_without_gradient" in found) is (name == "cut"), (name, found)
    frozen = keras.layers.Dense(16, activation="tanh", trainable=False)
    model = classifier(None, frozen)
    model.compile("adam", SPARSE(from_logits=True))
    assert "parameters_without_gradient" not in alarms(folder / "frozen", model, x, y)


class Stopped(keras.layers.Layer):
    """Passes on what it gets, and no gradient."""

    def call(self, x: Any) -> Any:
        return keras.ops.stop_gradient(x)


class Stepped(keras.Model):
    """Computes its loss with a method of its own."""

    def __init__(self, net: keras.Model) -> None:
        super().__init__()
        self.net = net

    def call(self, x: Any) -> Any:
        return self.net(x)

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, *_: Any, **__: Any) -> Any:
        loss = keras.losses.sparse_categorical_crossentropy(y, y_pred, from_logits=True)
        return keras.ops.mean(loss)
