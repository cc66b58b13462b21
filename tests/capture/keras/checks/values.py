"""What is recorded is what training used."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

import tdbg_lab as tdbg
from checks.training import RAW, callback, data, noisy, only, plain, with_and_without

if TYPE_CHECKING:
    from pathlib import Path

RATE = 0.25


def trained(folder: Path, optimizer: Any, *, epochs: int = 1, make: Any = plain, **settings: Any) -> Any:
    x, y = data(64)

    def compiled() -> keras.Model:
        model = make()
        model.compile(optimizer(), "mse")
        return model

    def fit(model: keras.Model, callbacks: list[Any]) -> Any:
        return model.fit(x, y, batch_size=16, epochs=epochs, verbose=0, shuffle=False, callbacks=callbacks)

    own, run = with_and_without(compiled, fit, folder, collections=RAW, **settings)
    assert own.handle.problems == []
    return run


def assert_steps_follow_gradients(run: Any, names: tuple[str, ...], *, tolerance: float) -> None:
    """Plain gradient descent: w[t + 1] = w[t] - rate * g[t], with the gradient as it was applied."""
    for name in names:
        steps = run.raw_steps(name)
        assert len(steps) >= 3
        for now, then in pairwise(steps):
            moved = run.tensor(name).value(now) - RATE * run.tensor(f"gradient/{name}").value(now)
            assert np.allclose(run.tensor(name).value(then), moved, atol=tolerance), (name, now)


def check_gradients_are_those_of_the_update(folder: Path) -> None:
    run = trained(folder, lambda: keras.optimizers.SGD(RATE))
    assert_steps_follow_gradients(run, ("first/kernel", "first/bias", "last/kernel"), tolerance=1e-6)


def check_gradients_are_those_of_the_update_with_dropout(folder: Path) -> None:
    run = trained(folder, lambda: keras.optimizers.SGD(RATE), make=noisy)
    assert_steps_follow_gradients(run, ("first/kernel", "norm/gamma", "last/kernel"), tolerance=1e-6)
    dropped = run.tensor("activation/drop").value(1)
    assert np.array_equal(dropped != 0, (dropped != 0) & (run.tensor("activation/first").value(1) != 0))


def check_gradients_are_recorded_clipped(folder: Path) -> None:
    run = trained(folder, lambda: keras.optimizers.SGD(RATE, global_clipnorm=0.01))
    assert_steps_follow_gradients(run, ("first/kernel", "last/bias"), tolerance=1e-7)
    assert np.allclose(run.scalars("optimizer/grad_norm").values, 0.01, rtol=1e-4)


def check_gradients_are_recorded_unscaled(folder: Path) -> None:
    run = trained(folder, lambda: keras.optimizers.SGD(RATE, loss_scale_factor=64.0))
    assert_steps_follow_gradients(run, ("first/kernel", "last/bias"), tolerance=1e-6)
    scaled = lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(RATE), initial_scale=256.0)  # noqa: E731
    run = trained(folder, scaled)
    assert_steps_follow_gradients(run, ("first/kernel", "last/bias"), tolerance=1e-6)
    assert run.scalars("optimizer/lr/0").values[-1] == RATE
    assert run.scalars("optimizer/loss_scale").values[-1] == 256.0


@only("torch", "jax")
def check_mixed_precision_is_seen_as_it_is(folder: Path) -> None:
    for policy, dtype in (("mixed_float16", "float16"), ("mixed_bfloat16", "bfloat16")):

        def make(policy: str = policy) -> keras.Model:
            keras.config.set_dtype_policy(policy)
            try:
                return noisy()
            finally:
                keras.config.set_dtype_policy("float32")

        run = trained(folder, lambda: keras.optimizers.SGD(RATE), make=make, epochs=2)
        keys = {key.name: key for key in run.tensors()}
        assert keys["activation/first"].dtype == dtype
        assert keys["gradient/first/kernel"].dtype == "float32"
        # half precision rounds differently in a graph with other fusions; a wrong scale would be far off
        assert_steps_follow_gradients(run, ("first/kernel", "last/bias"), tolerance=2e-3)


def check_steps_left_out_for_infinite_gradients_are_counted(folder: Path) -> None:
    huge = lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(RATE), initial_scale=1e39)  # noqa: E731
    run = trained(folder, huge)
    skipped = run.scalars("optimizer/skipped_steps").values
    assert list(skipped[:1]) == [1.0]
    assert np.array_equal(run.tensor("first/kernel").value(0), run.tensor("first/kernel").value(1))


def check_losses_are_those_of_single_batches(folder: Path) -> None:
    x, y = data(70)
    losses = []
    for every in (1, 4):
        keras.utils.set_random_seed(1)
        model = noisy()
        model.compile("adam", "mse", metrics=["mae"])
        own = callback(folder / str(every), save_every=every)
        history = model.fit(x, y, batch_size=16, epochs=2, verbose=0, callbacks=[own])
        losses.append(tdbg.open_run(own.run_path).scalars("loss/total"))
    exact, mixed = losses
    assert list(exact.steps) == list(mixed.steps) == list(range(10))
    assert np.allclose(exact.values, mixed.values, rtol=1e-5)
    sizes = np.array([16, 16, 16, 16, 6])
    means = [float(exact.values[start : start + 5] @ sizes / 70) for start in (0, 5)]
    assert np.allclose(means, history.history["loss"], rtol=1e-5)


def check_learning_rates_of_schedules_are_those_used(folder: Path) -> None:
    schedule = keras.optimizers.schedules.ExponentialDecay(0.5, decay_steps=1, decay_rate=0.5)
    run = trained(folder, lambda: keras.optimizers.Adam(schedule))
    assert np.allclose(run.scalars("optimizer/lr/0").values, [0.5, 0.25, 0.125, 0.0625])


def check_steps_that_only_add_gradients_up_tell_no_update(folder: Path) -> None:
    schedule = keras.optimizers.schedules.ExponentialDecay(0.5, decay_steps=1, decay_rate=0.5)
    run = trained(folder, lambda: keras.optimizers.SGD(schedule, gradient_accumulation_steps=2))
    assert np.allclose(run.scalars("optimizer/lr/0").values, [0.5, 0.25, 0.125, 0.0625])
    assert run.scalars("optimizer/update_ratio/first/kernel").steps.tolist() == [1, 3]
    assert run.tensor("gradient/first/kernel").steps().tolist() == [0, 1, 2, 3]


def check_moments_and_update_ratios_are_those_of_the_step(folder: Path) -> None:
    run = trained(folder, lambda: keras.optimizers.SGD(RATE, momentum=0.9))
    weight, gradient = (run.tensor(name).value(0) for name in ("first/kernel", "gradient/first/kernel"))
    ratio = RATE * np.linalg.norm(gradient) / np.linalg.norm(weight)
    assert np.isclose(run.scalars("optimizer/update_ratio/first/kernel").values[0], ratio, rtol=1e-4)
    momentum = run.tensor("optimizer/momentum/first/kernel").stats(0)
    assert np.isclose(momentum.l2[0], RATE * np.linalg.norm(gradient), rtol=1e-4)
