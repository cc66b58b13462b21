"""``fit``, ``evaluate`` and ``predict`` give the same with and without the callback; names and modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np

import tdbg_lab as tdbg
from checks.training import callback, data, noisy, only, optimized, plain, with_and_without
from tdbg_lab.records import RunStatus

if TYPE_CHECKING:
    from pathlib import Path


def fit(model: keras.Model, callbacks: list[Any], **options: Any) -> Any:
    x, y = data()
    chosen = {"batch_size": 16, "epochs": 2, "verbose": 0, "validation_data": (x[:20], y[:20]), **options}
    return model.fit(x, y, callbacks=callbacks, **chosen)


def even(model: keras.Model, callbacks: list[Any], **options: Any) -> Any:
    """Batches of one size only: each size is compiled by itself."""
    x, y = data(48)
    return model.fit(x, y, batch_size=16, epochs=2, verbose=0, callbacks=callbacks, **options)


def compiled(**options: Any) -> keras.Model:
    model = noisy()
    model.compile(**{"optimizer": keras.optimizers.Adam(1e-2), "loss": "mse", "metrics": ["mae"], **options})
    return model


@optimized
def check_fit_is_bitwise_the_same(folder: Path) -> None:
    own, run = with_and_without(compiled, fit, folder, save_every=3)
    assert own.handle.problems == []
    assert run.status is RunStatus.FINISHED
    assert list(run.steps(mode="train")) == list(range(10))
    assert list(run.steps(mode="train", tensor="activation/first")) == [0, 3, 6, 9]
    assert_names(run)


@optimized
def check_weights_of_samples_and_classes_are_kept(folder: Path) -> None:
    x, _ = data(64)
    y = np.arange(64) % 3

    def make() -> keras.Model:
        model = noisy()
        model.compile(
            "sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), weighted_metrics=["accuracy"]
        )
        return model

    for weights in ({"sample_weight": np.linspace(0, 1, 64)}, {"class_weight": {0: 1.0, 1: 2.0, 2: 0.5}}):

        def train(model: keras.Model, callbacks: list[Any], weights: dict[str, Any] = weights) -> Any:
            return model.fit(
                x, y, batch_size=16, verbose=0, callbacks=callbacks, validation_split=0.25, **weights
            )

        own, _ = with_and_without(make, train, folder, save_every=2)
        assert own.handle.problems == []


@only("tensorflow")
@optimized
def check_fit_is_the_same_compiled_by_xla_and_eagerly(folder: Path) -> None:
    for options in ({"jit_compile": True}, {"jit_compile": False}, {"run_eagerly": True}):
        own, run = with_and_without(lambda options=options: compiled(**options), even, folder, save_every=3)
        assert own.handle.problems == []
        assert "gradient/first/kernel" in run.tensor_names()


@only("jax")
def check_fit_is_the_same_without_jit(folder: Path) -> None:
    make = lambda: compiled(jit_compile=False, optimizer="sgd")  # noqa: E731
    own, run = with_and_without(make, even, folder, save_every=4)
    assert own.handle.problems == []
    assert "activation/first" in run.tensor_names()


def check_a_generator_of_batches_ends_as_it_does_without(folder: Path) -> None:
    x, y = data()

    def train(model: keras.Model, callbacks: list[Any]) -> Any:
        def batches() -> Any:
            for start in range(0, 64, 16):
                yield x[start : start + 16], y[start : start + 16]

        return model.fit(batches(), verbose=0, callbacks=callbacks)

    _, run = with_and_without(compiled, train, folder)
    assert list(run.steps(mode="train")) == [0, 1, 2, 3]


def assert_names(run: Any) -> None:
    names = set(run.tensor_names(mode="train"))
    assert {
        *("first/kernel", "first/bias", "norm/gamma", "norm/beta", "last/kernel"),
        *("gradient/first/kernel", "gradient/norm/gamma", "gradient/last/bias"),
        *("activation/first", "activation/drop", "activation/norm", "activation/last"),
        *("loss/total", "mae", "optimizer/lr/0", "optimizer/grad_norm"),
        *(
            "optimizer/update_ratio/first/kernel",
            "optimizer/momentum/first/kernel",
            "optimizer/velocity/last/bias",
        ),
        *("epoch/loss", "epoch/mae", "epoch/val_loss", "epoch/val_mae", "tdbg/capture_ms"),
    } <= names
    assert "norm/moving_mean" not in names  # buffers are there on request
    keys = {key.name: key for key in run.tensors()}
    assert "relu" in keys["activation/first"].collections
    assert "relu" not in keys["activation/last"].collections
    assert keys["gradient/first/kernel"].module == "first"
    assert str(keys["norm/beta"].kind) == "bias"
    assert keys["first/kernel"].dtype == "float32"
    assert run.info.framework == "keras"
    assert run.info.framework_version == keras.__version__
    assert run.info.hyperparameters["backend"] == keras.backend.backend()
    assert run.info.hyperparameters["optimizer"]["class"] == "Adam"
    assert run.info.hyperparameters["loss"] == "mse"


def check_evaluate_and_predict_are_modes_of_their_own(folder: Path) -> None:
    x, y = data(64)
    own = callback(folder)
    model = compiled()
    even(model, [own])
    before = own.run_path
    plain_values = model.evaluate(x, y, batch_size=16, verbose=0, return_dict=True)
    assert model.evaluate(x, y, batch_size=16, verbose=0, return_dict=True, callbacks=[own]) == plain_values
    predicted = model.predict(x, batch_size=16, verbose=0)
    assert np.array_equal(model.predict(x, batch_size=16, verbose=0, callbacks=[own]), predicted)
    assert own.run_path == before
    run = tdbg.open_run(before)
    assert {str(one) for one in run.modes()} == {"train", "eval", "predict"}
    assert "activation/first" in run.tensor_names(mode="predict")
    assert run.scalars("loss/total", mode="eval").values[-1] == np.float32(plain_values["loss"])
    assert run.status is RunStatus.FINISHED


def check_inputs_and_buffers_come_on_request(folder: Path) -> None:
    own = callback(folder, collections={"inputs": True, "buffers": True, "weights": {"modules": ["first"]}})
    even(compiled(), [own])
    names = set(tdbg.open_run(own.run_path).tensor_names())
    assert {"input/first", "norm/moving_mean", "first/kernel"} <= names
    assert "last/kernel" not in names
    assert not any("seed" in name for name in names)


def check_attach_watches_fit_without_a_callback(folder: Path) -> None:
    model = plain()
    model.compile("sgd", "mse")
    with tdbg.attach(model, store=folder / "run", save_every=2, strict=True, profiler=False) as handle:
        fit(model, [])
    assert "gradient/first/kernel" in handle.run.tensor_names()
    assert list(handle.run.steps(mode="train")) == list(range(10))
    assert "train_function" not in repr(type(model.train_function))
    assert type(model.train_function).__module__ != "tdbg_lab.capture.keras.session"
    assert "make_train_function" not in vars(model)
