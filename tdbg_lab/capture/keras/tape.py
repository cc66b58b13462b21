"""Training loops written with `tf.GradientTape`.

::

    handle = tdbg_lab.attach(model, optimizer=optimizer, store="runs/loop")
    for x, y in batches:
        with handle.wrap_tape(tf.GradientTape()) as tape:
            loss = loss_fn(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

A step ends when every optimizer that takes part has applied its gradients, or when one applies a
second time. Where no optimizer is known, it ends when the next tape begins.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.keras.live import LiveSink, add_loss
from tdbg_lab.capture.keras.rows import Rows
from tdbg_lab.capture.keras.session import KerasSession
from tdbg_lab.capture.keras.sinks import applied
from tdbg_lab.capture.keras.watch import watch
from tdbg_lab.capture.registry import open_handles
from tdbg_lab.capture.switch import is_off
from tdbg_lab.errors import CaptureError
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TapeLoop", "WrappedTape", "wrap_tape", "wrapped"]

_COMPILED = (
    "a gradient tape that runs inside a tf.function is not seen, because its tensors have no values there: "
    "wrap a tape outside of tf.function, or train with model.fit"
)


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
        if isinstance(handle.session, KerasSession):
            return wrapped(handle.session, tape)
    raise CaptureError(
        "No Keras model is attached to record the tape for; call tdbg_lab.attach(model, optimizer=...) first."
    )


def wrapped(session: Any, tape: Any) -> Any:
    """The tape, recorded by a session.

    Raises
    ------
    CaptureError
        It is not the session of a model of Keras on TensorFlow.
    """
    if not isinstance(session, KerasSession) or session.backend.name != "tensorflow":
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
        self._loop = loop
        self._tape = tape
        self._stack = ExitStack()

    def __enter__(self) -> WrappedTape:  # noqa: PYI034 - never subclassed
        self._tape.__enter__()
        self._loop.enter(self._stack)
        return self

    def __exit__(self, *error: object) -> Any:
        self._stack.close()
        return self._tape.__exit__(*error)

    def gradient(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        """As of the tape; loss and gradients are recorded when they are due."""
        result = self._tape.gradient(target, sources, *args, **kwargs)
        self._loop.take(target, sources, result)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)


class TapeLoop:
    """Where the steps of a loop begin and end."""

    def __init__(self, session: KerasSession) -> None:
        self._session = session
        self._open = False
        self._due = 0
        self._pending: dict[int, Any] = {}
        """``id`` of variables and gradients that no optimizer has applied yet."""
        self._losses: list[tuple[set[int], Any]] = []
        """Losses of this step, with the ``id`` of what their gradients are by."""
        self._asked = False
        """A tape was asked for gradients in this step."""
        self._stepped: set[str] = set()
        self._expected: set[str] = set()
        self._stack = ExitStack()
        self._sink: LiveSink | None = None
        self._watched = False
        """Layers are watched for a tape that is open; another one may be within it."""

    # -- the tape ---------------------------------------------------------------------------------

    def enter(self, stack: ExitStack) -> None:
        """A tape begins; `stack` is closed when it ends."""
        session = self._session
        if not session.engine.open or not self._eager():
            return
        if self._open and self._asked and not session.optimizer_map:
            self._close()
        if not self._open:
            session.engine.guard.run("steps", self._begin)
        if self._sink is not None and self._due & session.output_bits and not self._watched:
            self._watched = True
            stack.callback(setattr, self, "_watched", False)
            stack.enter_context(
                watch(
                    session.engine.guard,
                    self._sink,
                    sites=session.sites,
                    models=(),
                    optimizers={},
                    apply=True,
                )
            )
        session.engine.enter_phase("forward")

    def _eager(self) -> bool:
        import tensorflow as tf

        if tf.executing_eagerly():
            return True
        self._session.engine.guard.notice("tape", _COMPILED)
        return False

    def _begin(self) -> None:
        session = self._session
        engine = session.engine
        session.refresh()
        self._hang()
        engine.enter_train_step()
        self._open, self._asked, self._losses = True, False, []
        self._pending = {}
        self._due = engine.mask
        self._sink = None
        if not self._due & session.step_bits:
            return
        read = session.backend.before(None, ())
        engine.guard.run("weights", session.weights.before, self._due, read)
        engine.guard.run("optimizer/lr", session.optimizers.before, self._due, read)
        self._sink = session.live(self._due)

    def take(self, target: Any, sources: Any, result: Any) -> None:
        """A tape gave gradients."""
        session = self._session
        if self._open and session.engine.open and self._eager() and _trained(sources):
            self._asked = True
            session.engine.guard.run("loss", self._keep_loss, target, sources)
            if self._due & session.pass_bits:
                session.engine.guard.run("gradients", self._keep, sources, result)
            session.engine.enter_phase("optimizer")

    def _keep_loss(self, target: Any, sources: Any) -> None:
        import keras
        import tensorflow as tf

        if isinstance(target, tf.Tensor):
            value = target if not target.shape.rank else tf.reduce_sum(target)
            self._losses.append(({id(one) for one in keras.tree.flatten(sources)}, value))

    def _keep(self, sources: Any, result: Any) -> None:
        import keras

        values = keras.tree.flatten(result)
        for variable, value in zip(keras.tree.flatten(sources), values, strict=True):
            if value is not None:
                self._pending[id(variable)] = value

    # -- optimizers -------------------------------------------------------------------------------

    def _hang(self) -> None:
        for name, optimizer in self._session.optimizer_map.items():
            if name not in self._expected:
                self._expected.add(name)
                before = optimizer.apply
                call = self._applying(name, optimizer, before)
                object.__setattr__(optimizer, "apply", call)
                self._stack.callback(vars(optimizer).pop, "apply", None)

    def _applying(self, name: str, optimizer: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        def apply(grads: Any, trainable_variables: Any = None) -> Any:
            grads = list(grads)
            variables = None if trainable_variables is None else list(trainable_variables)
            ours = self._open and self._session.engine.open and self._eager()
            if ours:
                if name in self._stepped:  # a second time: the others do not take part in every step
                    self._expected = set(self._stepped)
                    self._close()
                    self._session.engine.guard.run("steps", self._begin)
                self._session.engine.guard.run("gradients", self._before, optimizer, grads, variables)
            result = original(grads, variables)
            if ours:
                self._stepped.add(name)
                if self._stepped >= self._expected:
                    self._close()
            return result

        return apply

    def _before(self, optimizer: Any, grads: list[Any], variables: list[Any] | None) -> None:
        if not self._due & self._session.pass_bits:
            return
        owned = optimizer._trainable_variables if variables is None else variables  # noqa: SLF001
        values = applied(optimizer, grads, None)
        for variable, value in zip(owned, values, strict=True):
            if value is not None:
                self._pending[id(variable)] = value

    def _close(self) -> None:
        session = self._session
        self._open = False
        self._stepped.clear()
        session.engine.guard.run("steps", self._finish)
        session.handle.at_step_end()

    def _write_losses(self) -> None:
        """Each loss, in a game by the optimizer that moves what it is for."""
        session, total = self._session, 0
        rows = Rows(session.engine, session.backend, self._due)
        for moved, value in self._losses:
            players = [
                name
                for name, optimizer in session.optimizer_map.items()
                if any(id(one) in moved for one in optimizer._trainable_variables)  # noqa: SLF001
            ]
            if len(players) == 1 and len(session.optimizer_map) > 1:
                add_loss(rows, 0, value, player=players[0])
            else:
                add_loss(rows, total, value)
                total += 1
        self._losses = []

    def _finish(self) -> None:
        session = self._session
        engine = session.engine
        engine.guard.run("loss", self._write_losses)
        if self._due & session.step_bits:
            engine.enter_phase("capture")
            read = session.backend.after(None, None)
            pending, self._pending = self._pending, {}
            engine.guard.run("gradients", session.optimizers.gradients, self._due, list(pending.items()))
            engine.guard.run("weights", session.weights.after, self._due, read)
            engine.guard.run("optimizer/moments", session.optimizers.after, self._due, read)
        if session.checks is not None:
            if self._sink is not None and session.optimizer_map:
                session.checks.passed(Mode.TRAIN, self._sink.modes)
            session.checks.after_step(None, everything=bool(self._due & session.step_bits))
        engine.enter_train_step()
        engine.close_step()

    def detach(self) -> None:
        """Take everything off the optimizers; a step that is open is closed."""
        if self._open and (self._stepped or (self._asked and not self._expected)):
            self._open = False
            self._session.engine.guard.run("steps", self._finish)
        self._stack.close()


def _trained(sources: Any) -> bool:
    """Whether gradients are by variables, and not by what enters a model (a penalty, a saliency)."""
    import keras
    import tensorflow as tf

    return any(isinstance(one, keras.Variable | tf.Variable) for one in keras.tree.flatten(sources))
