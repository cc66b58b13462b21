"""Small models and data that every check trains on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np

import tdbg_lab as tdbg

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RAW = {
    "weights": {"values": "both"},
    "biases": {"values": "both"},
    "gradients": {"values": "both"},
    "activations": {"values": "both"},
}


def only(*backends: str) -> Callable[[Any], Any]:
    """The check is for these backends."""

    def mark(check: Any) -> Any:
        check.backends = backends
        return check

    return mark


def optimized(check: Any) -> Any:
    """The check compiles as users do: rounding may depend on it."""
    check.optimized = True
    return check


def data(n: int = 70, features: int = 5, targets: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((n, features), dtype=np.float32), rng.random((n, targets), dtype=np.float32)


def noisy() -> keras.Model:
    """Dropout and batch normalization: everything that a second look at a batch could disturb."""
    inputs = keras.Input((5,))
    hidden = keras.layers.Dense(8, activation="relu", name="first")(inputs)
    hidden = keras.layers.Dropout(0.5, name="drop")(hidden)
    hidden = keras.layers.BatchNormalization(name="norm")(hidden)
    return keras.Model(inputs, keras.layers.Dense(3, name="last", kernel_regularizer="l2")(hidden))


def plain() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((5,)),
            keras.layers.Dense(8, activation="relu", name="first"),
            keras.layers.Dense(3, name="last"),
        ]
    )


def callback(folder: Path, **settings: Any) -> tdbg.KerasCallback:
    chosen = {"save_every": 1, "strict": True, "profiler": False, **settings}
    return tdbg.KerasCallback(folder / "run", **chosen)


def state(model: keras.Model) -> list[np.ndarray]:
    """All numbers of a model and its optimizer."""
    variables = [*model.variables, *(model.optimizer.variables if model.optimizer else [])]
    return [keras.ops.convert_to_numpy(one.value) for one in variables]


def same(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    """Bitwise."""
    return len(first) == len(second) and all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True)
    )


def with_and_without(
    make: Callable[[], keras.Model],
    train: Callable[[keras.Model, list[Any]], Any],
    folder: Path,
    **settings: Any,
) -> tuple[tdbg.KerasCallback, Any]:
    """Train twice from the same seed; assert that the callback changed nothing; give the callback."""
    ends = []
    own: list[tdbg.KerasCallback] = []
    for callbacks in ([], [callback(folder, **settings)]):
        keras.backend.clear_session()
        keras.utils.set_random_seed(3)
        model = make()
        history = train(model, callbacks)
        ends.append((state(model), history.history if hasattr(history, "history") else history))
        own += callbacks
    assert same(ends[0][0], ends[1][0]), "weights or optimizer differ"
    assert repr(ends[0][1]) == repr(ends[1][1]), (ends[0][1], ends[1][1])
    return own[0], tdbg.open_run(own[0].run_path)
