"""Keras 3 on its TensorFlow, JAX and PyTorch backends, and TensorFlow's gradient tapes.

Compiled functions are never changed: a step that is not saved runs Keras's own function and nothing
else. On a saved step a second function computes the outputs, the loss and the gradients of the same
batch from the same state without applying them, and then Keras's own function takes the step. Where
Keras runs eagerly (PyTorch, ``run_eagerly``), the step itself is watched.
"""

from __future__ import annotations

from tdbg_lab.errors import MissingDependencyError

try:
    import keras  # noqa: F401 - so that its absence is said in one sentence
except ImportError as error:
    raise MissingDependencyError(
        f"KerasCallback needs Keras 3 and the backend that KERAS_BACKEND names ({error}): "
        "pip install tdbg-lab[keras] and tensorflow, jax or torch"
    ) from error

from tdbg_lab.capture.keras.callback import KerasCallback
from tdbg_lab.capture.keras.wrapped_tape import wrap_tape

__all__ = ["KerasCallback", "wrap_tape"]
