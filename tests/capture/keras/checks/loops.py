"""Training that is not plain ``fit``: a loop with a tape, a ``train_step`` of one's own, a stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np

import tdbg_lab as tdbg
from checks.training import callback, data, only, plain
from tdbg_lab.records import RunStatus

if TYPE_CHECKING:
    from pathlib import Path


def assert_settings(run: tdbg.Run, **expected: float) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(run.scalars(f"check/optimizer/SGD/{name}").values[0], value)


@only("tensorflow")
def check_a_loop_with_a_tape_is_recorded_and_the_same(folder: Path) -> None:
    import tensorflow as tf

    x, y = data()

    def train(store: Path | None) -> list[Any]:
        keras.utils.set_random_seed(0)
        model = plain()
        optimizer = keras.optimizers.SGD(0.1, momentum=0.5, weight_decay=0.01)
        handle = tdbg.attach(model, optimizer=optimizer, store=store, save_every=2) if store else None
        for _ in range(5):
            tape = tf.GradientTape()
            with handle.wrap_tape(tape) if handle else tape as seen:
                loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
            gradients = seen.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        if handle:
            handle.detach()
            assert handle.problems == []
        return [np.asarray(one) for one in model.get_weights()]

    bare, seen = train(None), train(folder / "loop")
    for one, other in zip(bare, seen, strict=True):
        assert (one == other).all()
    run = tdbg.open_run(folder / "loop")
    assert run.status is RunStatus.FINISHED
    gradients = run.tensor_names(kind="gradient")
    assert len(gradients) == len(bare)
    assert list(run.steps(tensor=gradients[0])) == [0, 2, 4]
    assert len(run.scalars("loss/total").values) >= 3
    assert_settings(run, momentum=0.5, decay=0.01, shrinks=0.001)


def check_a_stop_request_ends_fit_after_the_step(folder: Path) -> None:
    x, y = data()
    model = plain()
    model.compile("sgd", "mse")
    own = callback(folder, save_every=2)

    class Impatient(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 1:
                tdbg.open_run(own.run_path).request_stop("enough")

    steps_asked = 9 * 400
    model.fit(x, y, batch_size=8, epochs=400, verbose=0, callbacks=[own, Impatient()])
    run = tdbg.open_run(own.run_path)
    assert run.status is RunStatus.STOPPED
    assert run.info.error == "enough"
    assert 1 <= run.last_step < steps_asked / 2  # the control file is looked at a few times a second


@only("tensorflow")
def check_a_loop_whose_steps_nobody_tells_is_said(folder: Path) -> None:
    x, _ = data()
    model = plain()
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    handle = tdbg.attach(model, optimizer=optimizer, store=folder / "untold", profiler=False)
    for _ in range(3):
        model(x)
        zeros = [keras.ops.zeros_like(one) for one in model.trainable_variables]
        optimizer.apply(zeros, model.trainable_variables)
    handle.detach()
    (problem,) = handle.problems
    assert "updated the model 3 times, of which no step was seen" in problem.message


@only("torch")
def check_a_loop_of_pytorch_is_recorded_and_the_same(folder: Path) -> None:
    import torch

    x, y = (torch.as_tensor(one) for one in data())

    def train(store: Path | None, *, by_keras: bool) -> list[Any]:
        keras.utils.set_random_seed(0)
        model = plain()
        model(x)
        own = keras.optimizers.SGD(0.1) if by_keras else torch.optim.SGD(model.parameters(), 0.1)
        loss = keras.losses.MeanSquaredError()
        handle = tdbg.attach(model, optimizer=own, loss=loss, store=store, save_every=2) if store else None
        for _ in range(5):
            model.zero_grad()
            loss(y, model(x, training=True)).backward()
            if by_keras:
                weights = model.trainable_weights
                with torch.no_grad():
                    own.apply([one.value.grad for one in weights], weights)
            else:
                own.step()
        if handle:
            handle.detach()
            assert handle.problems == []
        return [np.asarray(one) for one in model.get_weights()]

    for by_keras in (True, False):
        store = folder / f"loop-{by_keras}"
        bare, seen = train(None, by_keras=by_keras), train(store, by_keras=by_keras)
        for one, other in zip(bare, seen, strict=True):
            assert (one == other).all()
        run = tdbg.open_run(store)
        gradients = run.tensor_names(kind="gradient")
        assert len(gradients) == len(bare)
        assert list(run.steps(tensor=gradients[0])) == [0, 2, 4]
        assert len(run.scalars("loss/objective").values) == 5
        ratios = [name for name in run.tensor_names() if name.startswith("optimizer/update_ratio/")]
        assert len(ratios) == len(bare)
        for name in ("optimizer/lr/0", *ratios):
            assert list(run.steps(tensor=name)) == [0, 2, 4], name


@only("torch")
def check_a_model_that_has_no_weights_before_its_first_call_is_recorded_from_it(folder: Path) -> None:
    import torch

    class Net(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.hidden, self.out = keras.layers.Dense(8, "relu", name="hidden"), keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.out(self.hidden(x))

    x, y = (torch.as_tensor(one) for one in data())
    model, optimizer = Net(), keras.optimizers.SGD(0.1, momentum=0.5, weight_decay=0.01)
    handle = tdbg.attach(model, optimizer=optimizer, store=folder / "unbuilt", save_every=1)
    for _ in range(3):
        model.zero_grad()
        torch.mean((model(x) - y) ** 2).backward()
        weights = model.trainable_weights
        with torch.no_grad():
            optimizer.apply([one.value.grad for one in weights], weights)
    handle.detach()
    assert handle.problems == []
    run = tdbg.open_run(folder / "unbuilt")
    for name in ("activation/hidden", "hidden/kernel", "gradient/hidden/kernel"):
        assert list(run.steps(tensor=name)) == [0, 1, 2], name
    assert_settings(run, momentum=0.5, decay=0.01, shrinks=0.001)
    first, last = (run.tensor("hidden/kernel").stats(step).l2[0] for step in (0, 2))
    assert first != last


@only("torch")
def check_optimizers_of_both_kinds_may_be_given_and_are_left_as_they_were(folder: Path) -> None:
    import torch

    x, _ = (torch.as_tensor(one) for one in data())
    model = plain()
    model(x)
    own = keras.optimizers.SGD(0.1)
    both = [own, torch.optim.SGD(model.parameters(), 0.1)]
    handle = tdbg.attach(model, optimizer=both, store=folder / "both", profiler=False)
    assert "apply" in vars(own)
    handle.detach()
    assert handle.problems == []
    assert "apply" not in vars(own)


def check_a_step_of_another_training_is_no_wait_for_data(folder: Path) -> None:
    x, y = data()
    models = [plain(), plain()]
    for model in models:
        model.compile("sgd", "mse")
    handles = [tdbg.attach(one, store=folder / str(n), save_every=2) for n, one in enumerate(models)]
    for _ in range(4):
        for model in models:
            model.train_on_batch(x, y)
    for handle in handles:
        handle.detach()
    for n, steps in enumerate(([1, 2, 3, 4], [1, 2, 3])):
        spans = tdbg.open_run(folder / str(n)).spans(phases=["other"])
        assert spans.step.tolist() == steps
