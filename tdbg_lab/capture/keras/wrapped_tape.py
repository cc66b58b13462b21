"""A `tf.GradientTape` whose training loop is recorded.

::

    handle = tdbg_lab.attach(model, optimizer=optimizer, store="runs/loop")
    for x, y in batches:
        with handle.wrap_tape(tf.GradientTape()) as tape:
            loss = loss_fn(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.keras.tape import TapeLoop
from tdbg_lab.capture.registry import open_handles
from tdbg_lab.capture.switch import is_off
from tdbg_lab.errors import CaptureError

if TYPE_CHECKING:
    from tdbg_lab.capture.keras.session import KerasSession

__all__ = ["WrappedTape", "wrap_tape", "wrapped"]


def wrap_tape(tape: Any) -> Any:
    """Record what a `tf.GradientTape` sees, into the run that was attached last.

    Raises
    ------
    CaptureError
        No model of Keras is attached.
    """
    if is_off():
        return tape
    for handle in reversed(open_handles()):
        if hasattr(handle.session, "wrap_tape"):
            return handle.wrap_tape(tape)
    raise CaptureError(
        "No Keras model is attached to record the tape for; call tdbg_lab.attach(model, optimizer=...) first."
    )


def wrapped(session: KerasSession, tape: Any) -> Any:
    """The tape, recorded by a session.

    Raises
    ------
    CaptureError
        Keras does not use TensorFlow, or `tape` is no tape.
    """
    if session.backend.name != "tensorflow":
        raise CaptureError("wrap_tape needs a handle of a Keras model on the TensorFlow backend.")
    if isinstance(tape, WrappedTape):
        return tape
    if not hasattr(tape, "gradient") or not hasattr(tape, "watch"):
        raise CaptureError(f"tape is of type {type(tape).__name__}; expected a tf.GradientTape.")
    loop = session.loop
    if loop is None:
        loop = session.loop = TapeLoop(session)
    return WrappedTape(loop, tape)


class WrappedTape:
    """A gradient tape that tells a loop when it begins and what it gave; else it is the tape."""

    def __init__(self, loop: TapeLoop, tape: Any) -> None:
        import tensorflow as tf

        self._loop = loop
        self._tape = tape
        self._stack = ExitStack()
        self.gradient = tf.autograph.experimental.do_not_convert(self._gradient)
        """As of the tape; loss and gradients are recorded when they are due."""

    def __enter__(self) -> WrappedTape:  # noqa: PYI034 - never subclassed
        self._tape.__enter__()
        self._loop.enter(self._stack)
        return self

    def __exit__(self, *error: object) -> Any:
        self._stack.close()
        return self._tape.__exit__(*error)

    def _gradient(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        self._loop.ask(sources)
        result = self._tape.gradient(target, sources, *args, **kwargs)
        self._loop.take(target, sources, result)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)
