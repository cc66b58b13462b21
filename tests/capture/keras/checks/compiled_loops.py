"""Training steps that are a ``tf.function``: seen on saved steps, and the same as without us."""

from __future__ import annotations

import io
import logging
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

import tdbg_lab as tdbg
from checks.training import data, only, optimized, plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STEPS = 5


class Loop:
    """A loop of a few steps with one model, watched or not; what it leaves behind."""

    def __init__(self, store: Path | None, model: Callable[[], Any] = plain, **options: Any) -> None:
        keras.utils.set_random_seed(0)
        self.model, self.optimizer = model(), keras.optimizers.Adam(0.01)
        settings = {"save_every": 2, "profiler": False, **options}
        self.handle = (
            tdbg.attach(self.model, optimizer=self.optimizer, store=store, **settings) if store else None
        )
        self.said: list[Any] = []

    def tape(self) -> Any:
        import tensorflow as tf

        return self.handle.wrap_tape(tf.GradientTape()) if self.handle else tf.GradientTape()

    def loss_and_gradients(self, x: Any, y: Any) -> Any:
        import tensorflow as tf

        with self.tape() as tape:
            loss = tf.reduce_mean((self.model(x, training=True) - y) ** 2)
        return loss, tape.gradient(loss, self.model.trainable_variables)

    def step(self, x: Any, y: Any) -> Any:
        loss, gradients = self.loss_and_gradients(x, y)
        self.optimizer.apply(gradients, self.model.trainable_variables)
        return loss

    def end(self) -> list[Any]:
        if self.handle:
            self.handle.detach()
        return [*self.said, *(one.tobytes() for one in self.model.get_weights())]


def deep() -> Any:
    """With variables that no optimizer moves: statistics of batches, the state of a generator."""
    parts = [keras.layers.Dense(6, "relu"), keras.layers.BatchNormalization(), keras.layers.Dropout(0.4)]
    return keras.Sequential([keras.Input(data()[0].shape[1:]), *parts, keras.layers.Dense(1)])


def both(folder: Path, program: Callable[[Loop], None], **options: Any) -> tuple[Any, list[str]]:
    """The run of a program that does the same when it is watched, and what is said of it."""

    def run(store: Path | None) -> tuple[list[Any], Loop]:
        loop = Loop(store, **options)
        with redirect_stdout(printed := io.StringIO()):
            program(loop)
        return [*loop.end(), printed.getvalue()], loop

    bare, _ = run(None)
    seen, loop = run(folder / "run")
    assert bare == seen
    assert loop.handle is not None
    return tdbg.open_run(folder / "run"), [one.message for one in loop.handle.problems]


@only("tensorflow")
@optimized
def check_a_compiled_step_is_seen_and_the_same(folder: Path) -> None:
    import tensorflow as tf

    x, y = data()

    def program(loop: Loop) -> None:
        mean = keras.metrics.Mean()

        @tf.function
        def step(x: Any, y: Any) -> Any:
            print("traced")
            loss = loop.step(x, y)
            mean.update_state(loss)
            return {"loss": loss, "again": None}

        for _ in range(STEPS):  # arrays: inside the function they are tensors
            loop.said.append(float(step(x, y)["loss"]))
        loop.said.append(float(mean.result()))

    run, problems = both(folder, program, model=deep)
    assert (run.last_step, problems) == (STEPS - 1, [])
    assert run.scalars("loss/total").steps.tolist() == [*range(STEPS)]
    names = run.tensor_names()
    for kind, n in (("activation/", 4), ("gradient/", 6)):
        assert sum(name.startswith(kind) for name in names) == n
        assert run.tensor(next(name for name in names if name.startswith(kind))).steps().tolist() == [0, 2, 4]


@only("tensorflow")
def check_a_compiled_step_is_told_as_an_eager_one(folder: Path) -> None:
    import tensorflow as tf

    x, y = map(tf.constant, data())

    def run(name: str, made: Callable[[Any], Any]) -> Any:
        loop = Loop(folder / name)
        step = made(loop.step)
        for _ in range(STEPS):
            step(x, y)
        loop.end()
        return tdbg.open_run(folder / name)

    eager, compiled = run("eager", lambda step: step), run("compiled", tf.function)
    assert eager.tensor_names() == compiled.tensor_names()
    for name in eager.tensor_names():
        if not name.startswith("tdbg/"):
            one, other = eager.tensor(name), compiled.tensor(name)
            assert one.steps().tolist() == other.steps().tolist(), name
            ours, theirs = (each.history(["mean", "l2"])[["mean", "l2"]].to_numpy() for each in (one, other))
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6, err_msg=name)


@only("tensorflow")
def check_the_time_of_a_step_is_no_wait_for_data(folder: Path) -> None:
    import tensorflow as tf

    x, y = map(tf.constant, data())

    def phases(name: str, made: Callable[[Any], Any]) -> dict[int, set[str]]:
        loop = Loop(folder / name, profiler=True)
        step = made(loop.step)
        for _ in range(STEPS):
            step(x, y)
        loop.end()
        spans = tdbg.open_run(folder / name).spans()
        return {step: set(spans.phase[spans.step == step]) - {"capture", "data"} for step in range(STEPS)}

    whole, parts = {"step"}, {"forward", "backward", "optimizer"}
    assert phases("compiled", tf.function) == dict.fromkeys(range(STEPS), whole)
    assert phases("eager", lambda step: step) == dict.fromkeys(range(STEPS), parts)


@only("tensorflow")
def check_what_tensorflow_logs_is_not_said_again(folder: Path) -> None:
    import tensorflow as tf

    x, y = data()
    told: list[str] = []

    def heard(record: logging.LogRecord) -> bool:
        told.append(record.getMessage())
        return False

    def program(loop: Loop) -> None:
        @tf.function
        def step(x: Any, y: Any) -> Any:
            tf.get_logger().warning("slow")
            return loop.step(x, y)

        for _ in range(STEPS):
            loop.said.append(float(step(x, y)))
        loop.said.append(told.count("slow"))
        told.clear()

    handler = logging.Handler()
    handler.addFilter(heard)
    tf.get_logger().addHandler(handler)
    try:
        run, problems = both(folder, program)
    finally:
        tf.get_logger().removeHandler(handler)
    assert (run.last_step, problems) == (STEPS - 1, [])


@only("tensorflow")
def check_gradients_that_a_function_computes_are_seen(folder: Path) -> None:
    import tensorflow as tf

    x, y = data()

    def program(loop: Loop) -> None:
        gradients_of = tf.function(loop.loss_and_gradients)
        for _ in range(STEPS):
            loss, gradients = gradients_of(x, y)
            loop.optimizer.apply(gradients, loop.model.trainable_variables)
            loop.said.append(float(loss))

    run, problems = both(folder, program)
    assert (run.last_step, problems) == (STEPS - 1, [])
    assert run.scalars("loss/total").steps.tolist() == [*range(STEPS)]
    assert run.tensor(run.tensor_names(kind="activation")[0]).steps().tolist() == [0, 2, 4]
    assert run.tensor(run.tensor_names(kind="gradient")[0]).steps().tolist() == [0, 2, 4]


@only("tensorflow")
def check_functions_within_a_function_are_seen_for_batches_of_all_sizes(folder: Path) -> None:
    import tensorflow as tf

    x, y = data()

    def program(loop: Loop) -> None:
        loop.model = tf.function(model := loop.model)  # what the loop calls
        moved = loop.model.trainable_variables = model.trainable_variables
        apply = tf.function(lambda given: loop.optimizer.apply(given, moved))

        @tf.function
        def step(x: Any, y: Any) -> Any:
            loss, gradients = loop.loss_and_gradients(x, y)
            apply(gradients)
            return loss

        for at in range(STEPS):
            loop.said.append(float(step(x[at % 3 :], y[at % 3 :])))
        loop.model = model

    run, problems = both(folder, program)
    assert (run.last_step, problems) == (STEPS - 1, [])
    assert run.scalars("loss/total").steps.tolist() == [*range(STEPS)]
    assert run.tensor(run.tensor_names(kind="gradient")[0]).steps().tolist() == [0, 2, 4]


@only("tensorflow")
def check_what_cannot_be_looked_at_is_left_alone_and_told(folder: Path) -> None:
    import tensorflow as tf

    x, y = data()

    def not_eager(loop: Loop) -> Any:
        return loop.step(x, y).op.outputs[0]

    def acts(loop: Loop) -> Any:
        tf.py_function(lambda: loop.said.append("done"), [], [])
        return loop.step(x, y)

    def draws(loop: Loop) -> Any:
        return loop.step(x + tf.random.normal(x.shape), y)

    def several(loop: Loop) -> Any:
        return [loop.step(x, y) for _ in range(2)]

    def repeats(loop: Loop) -> Any:
        total = tf.constant(0.0)
        for _ in tf.range(2):
            total += loop.step(x, y)
        return total

    reasons = {
        not_eager: "it does not run eagerly (AttributeError",
        acts: "it does more than compute (EagerPyFunc), which would be done twice",
        draws: "it draws numbers from tf.random with a seed",
        several: "it takes several steps in one call",
        repeats: "a loop that runs within one call of a tf.function is not seen",
    }
    for made, reason in reasons.items():

        def program(loop: Loop, made: Any = made) -> None:
            step = tf.function(lambda: made(loop))
            for _ in range(3):
                loop.said.append(np.sum(step()))
            loop.said.append(float(tf.random.normal([])))  # numbers to come are what they would be

        run, problems = both(folder / made.__name__, program)
        assert any(reason in one for one in problems), (made.__name__, problems)
        assert made is repeats or run.tensor_names(kind="weight"), made.__name__


@only("tensorflow")
def check_an_error_of_a_compiled_step_is_the_programs_own(folder: Path) -> None:
    import tensorflow as tf

    x, y = data()

    def program(loop: Loop) -> None:
        @tf.function
        def step() -> Any:
            loss = loop.step(x, y)
            tf.debugging.assert_less(loop.optimizer.iterations.value, tf.constant(4, tf.int64))
            return loss

        try:
            for _ in range(STEPS):
                loop.said.append(float(step()))
        except tf.errors.InvalidArgumentError as error:
            loop.said.append(type(error).__name__)

    run, problems = both(folder, program, save_every=1)
    assert problems == []
    assert run.scalars("loss/total").steps.tolist() == [0, 1, 2]


@only("tensorflow")
def check_two_functions_take_one_step_together(folder: Path) -> None:
    import tensorflow as tf

    x, _ = data()

    def train(store: Path | None) -> list[Any]:
        keras.utils.set_random_seed(0)
        critic = keras.Sequential([keras.Input(x.shape[1:]), keras.layers.Dense(1, name="judge")])
        maker = keras.Sequential([keras.Input((2,)), keras.layers.Dense(x.shape[1], name="paint")])
        models, optimizers = {"critic": critic, "maker": maker}, {}
        for name in models:
            optimizers[name] = keras.optimizers.SGD(0.01)
        handle = (
            tdbg.attach(models, optimizer=optimizers, store=store, save_every=2, profiler=False)
            if store
            else None
        )

        def taped(loss_of: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
            @tf.function
            def step(noise: Any) -> Any:
                tape = tf.GradientTape()
                with handle.wrap_tape(tape) if handle else tape as seen:
                    loss = loss_of(noise)
                moved = models[name].trainable_variables
                optimizers[name].apply(seen.gradient(loss, moved), moved)
                return loss

            return step

        judge = taped(lambda noise: tf.reduce_mean(critic(maker(noise)) - critic(x)), "critic")
        paint = taped(lambda noise: -tf.reduce_mean(critic(maker(noise))), "maker")
        for step in range(STEPS):
            noise = tf.random.stateless_normal((len(x), 2), (0, step))
            judge(noise), paint(noise)
        if handle:
            handle.detach()
            assert handle.problems == []
        return [one.tobytes() for model in models.values() for one in model.get_weights()]

    assert train(None) == train(folder / "run")
    run = tdbg.open_run(folder / "run")
    assert run.last_step == STEPS - 1
    for player in ("critic", "maker"):
        assert run.scalars(f"loss/total/{player}").steps.tolist() == [*range(STEPS)]
    assert run.tensor("gradient/maker/paint/kernel").steps().tolist() == [0, 2, 4]


@only("tensorflow")
def check_fit_beside_a_compiled_loop_is_counted_once(folder: Path) -> None:
    import tensorflow as tf

    x, y = data()

    def program(loop: Loop) -> None:
        loop.model.compile("sgd", "mse")
        step = tf.function(loop.step)
        step(x, y)
        loop.model.fit(x, y, batch_size=len(x), epochs=2, shuffle=False, verbose=0)
        step(x, y)

    run, problems = both(folder, program, save_every=1)
    assert (run.last_step, problems) == (3, [])
