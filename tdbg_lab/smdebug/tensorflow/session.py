"""Hooks for sessions of TensorFlow 1, which neither TensorFlow 2's trainers nor Keras 3 run."""

from __future__ import annotations

from typing import Any

from tdbg_lab.smdebug.exceptions import SMDebugNotImplementedError

__all__ = ["EstimatorHook", "SessionHook"]


class SessionHook:
    """Kept so that its import works.

    Raises
    ------
    SMDebugNotImplementedError
        Always; it says what to use instead.
    """

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        raise SMDebugNotImplementedError(
            f"{type(self).__name__} is for sessions and estimators of TensorFlow 1, which are not recorded: "
            "use KerasHook with model.fit, or its wrap_tape in a loop with tf.GradientTape. "
            "Stores that the original recorded open with create_trial."
        )


class EstimatorHook(SessionHook):
    """As `SessionHook`."""
