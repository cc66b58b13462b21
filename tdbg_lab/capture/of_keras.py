"""What of the things that are given is Keras's; told without importing it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["KERAS_2", "is_layer", "is_loss", "is_of_keras_2", "is_optimizer", "trained_by_pytorch"]

KERAS_2 = (
    "of Keras 2 (tf_keras), which is not captured; expected a model of Keras 3: import keras, and leave "
    "TF_USE_LEGACY_KERAS unset for tf.keras"
)
"""What is said of a model that is built with the package of the old releases."""


def is_layer(thing: Any) -> bool:
    """Whether something, or the first of several, is a layer or a model of Keras."""
    return _is_a(thing, "layers", "Layer")


def is_optimizer(thing: Any) -> bool:
    """Whether something, or the first of several, is an optimizer of Keras."""
    return _is_a(thing, "optimizers", "Optimizer")


def is_loss(thing: Any) -> bool:
    """Whether something, or the first of several, is a loss of Keras."""
    return _is_a(thing, "losses", "Loss")


def is_of_keras_2(thing: Any) -> bool:
    """Whether something, or the first of several, is of the package of the old releases."""
    kinds = type(_first(thing)).__mro__
    return any(kind.__module__.partition(".")[0] == "tf_keras" for kind in kinds)


def trained_by_pytorch(model: Any, optimizer: Any) -> bool:
    """Whether a model of Keras is trained by a loop of PyTorch, and not by Keras.

    It is given an optimizer of PyTorch then; or one of Keras, which the model was not compiled with.
    """
    if optimizer is None or sys.modules["keras"].backend.backend() != "torch":
        return False
    if isinstance(_first(optimizer), sys.modules["torch"].optim.Optimizer):
        return True
    return is_optimizer(optimizer) and getattr(_first(model), "optimizer", None) is None


def _is_a(thing: Any, package: str, kind: str) -> bool:
    found = getattr(sys.modules.get("keras"), package, None)
    return found is not None and isinstance(_first(thing), getattr(found, kind))


def _first(things: Any) -> Any:
    if isinstance(things, Mapping):
        return next(iter(things.values()), None)
    if isinstance(things, list | tuple):
        return things[0] if things else None
    return things
