"""The steps of a training loop written with `tf.GradientTape`.

A step ends when every optimizer that takes part has applied its gradients, or when one applies a
second time. Where no optimizer is known, it ends when the next tape begins. A step may be a ``tf.function``,
see `tdbg_lab.capture.keras.compiled_steps`.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.keras.functions import is_eager, running
from tdbg_lab.capture.keras.live import LiveSink, add_loss
from tdbg_lab.capture.keras.rows import Rows
from tdbg_lab.capture.keras.sinks import applied
from tdbg_lab.capture.keras.watch import watch
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tdbg_lab.capture.keras.session import KerasSession

__all__ = ["TapeLoop", "ids_of", "trained"]

_COMPILED = (
    "a gradient tape inside a graph is not seen, because its tensors have no values there, unless it is the "
    "graph of a tf.function that was not called before: attach first, or train with model.fit"
)


class TapeLoop:
    """Where the steps of a loop begin and end."""

    def __init__(self, session: KerasSession) -> None:
        from tdbg_lab.capture.keras.compiled_steps import CompiledSteps

        self._session = session
        self.compiled = CompiledSteps(self)
        """Steps that are a ``tf.function``."""
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
        self._looking = False
        """What runs is no step itself."""

    # -- the tape ---------------------------------------------------------------------------------

    def enter(self, stack: ExitStack) -> None:
        """A tape begins; `stack` is closed when it ends."""
        session = self._session
        if not self.listens:
            return
        if not is_eager():
            session.engine.guard.run("steps", self.hang)
            return
        if self._open and self._asked and not session.optimizer_map and not self._looking:
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
        if not self._looking:
            session.engine.enter_phase("forward")

    def _begin(self) -> None:
        session = self._session
        engine = session.engine
        engine.enter_train_step()
        engine.begin_step()
        if engine.mask or not engine.step:  # of other steps nothing is read that a model might have got
            session.refresh()
        self.hang()
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

    def ask(self, sources: Any) -> None:
        """A tape is asked for gradients."""
        if self._open and not self._looking and is_eager() and self.listens and trained(sources):
            self._session.engine.enter_phase("backward")

    def take(self, target: Any, sources: Any, result: Any) -> None:
        """A tape gave gradients."""
        session = self._session
        if not is_eager():
            if self.listens and trained(sources):
                session.engine.guard.run("tape", self._note_traced, target, sources)
        elif self._open and session.engine.open and trained(sources):
            self._asked = True
            session.engine.guard.run("loss", self._keep_loss, target, sources)
            if self._due & session.pass_bits:
                session.engine.guard.run("gradients", self._keep, sources, result)
            if not self._looking:
                session.engine.enter_phase("optimizer")

    def _note_traced(self, target: Any, sources: Any) -> None:
        from tdbg_lab.capture.keras.function_calls import Traced

        traced = Traced.now()
        if traced is None:
            self.notice(_COMPILED)
        else:
            self.compiled.asked(ids_of(sources), target, traced)

    def _keep_loss(self, target: Any, sources: Any) -> None:
        import tensorflow as tf

        if isinstance(target, tf.Tensor):
            value = target if not target.shape.rank else tf.reduce_sum(target)
            self._losses.append((ids_of(sources), value))

    def _keep(self, sources: Any, result: Any) -> None:
        import keras

        values = keras.tree.flatten(result)
        for variable, value in zip(keras.tree.flatten(sources), values, strict=True):
            if value is not None:
                self._pending[id(variable)] = value

    # -- optimizers -------------------------------------------------------------------------------

    def hang(self) -> None:
        """Follow the optimizers that are known by now."""
        for name, optimizer in self._session.optimizer_map.items():
            if name not in self._expected:
                self._expected.add(name)
                before = optimizer.apply
                call = self._applying(name, optimizer, before)
                object.__setattr__(optimizer, "apply", call)
                self._stack.callback(vars(optimizer).pop, "apply", None)

    def _applying(self, name: str, optimizer: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        import tensorflow as tf

        def apply(grads: Any, trainable_variables: Any = None) -> Any:
            grads = list(grads)
            variables = None if trainable_variables is None else list(trainable_variables)
            eager = is_eager()
            ours = eager and self._open and self._session.engine.open
            steps = ours and not self._looking
            if not eager and self.listens:
                self._session.engine.guard.run("tape", self.compiled.applied, name)
            if steps and self._ends_before([name]):
                self._session.engine.guard.run("steps", self._begin)
            if ours:
                self._session.engine.guard.run("gradients", self._before, optimizer, grads, variables)
            result = original(grads, variables)
            if steps:
                self._note_step(name)
            return result

        uncompiled: Callable[..., Any] = tf.autograph.experimental.do_not_convert(apply)
        return uncompiled

    def _ends_before(self, names: Sequence[str]) -> bool:
        """End the step that is open when one of these optimizers has stepped in it; whether it was ended."""
        if not self._stepped.isdisjoint(names):  # a second time: the others do not take part in every step
            self._expected = set(self._stepped)
            self._close()
            return True
        return False

    def _note_step(self, name: str) -> None:
        self._stepped.add(name)
        if self._stepped >= self._expected:
            self._close()

    def _before(self, optimizer: Any, grads: list[Any], variables: list[Any] | None) -> None:
        if not self._due & self._session.pass_bits:
            return
        owned = optimizer._trainable_variables if variables is None else variables  # noqa: SLF001
        values = applied(optimizer, grads, None)
        for variable, value in zip(owned, values, strict=True):
            if value is not None:
                self._pending[id(variable)] = value

    # -- steps that are compiled ------------------------------------------------------------------

    @property
    def listens(self) -> bool:
        """Whether steps are the loop's: the run is open, and Keras is not fitting."""
        from tdbg_lab.capture.keras.function_calls import in_keras

        return self._session.engine.open and not running() and not in_keras()

    def notice(self, message: str) -> None:
        """Say once that something is not seen."""
        self._session.engine.guard.notice("tape", message)

    def begin(self, names: Sequence[str]) -> bool:
        """A compiled function will let these optimizers step; whether what happens in it is wanted."""
        session = self._session
        if self._open and self._asked and not session.optimizer_map:
            self._close()
        self._ends_before(names)
        if not self._open:
            session.engine.guard.run("steps", self._begin)
        session.engine.enter_phase("step")
        return self._open and bool(self._due & session.pass_bits)

    def look(self, run: Callable[[], bool]) -> None:
        """See what happens while something runs that is no step itself; it returns whether that went well."""
        engine, known = self._session.engine, len(self._losses)
        self._looking = True
        engine.enter_phase("capture")
        try:
            if not engine.guard.run("outputs", run):
                del self._losses[known:]
        finally:
            self._looking = False
            engine.enter_phase("step")

    def passed(self, names: Sequence[str], losses: Callable[[], list[tuple[set[int], Any]]]) -> None:
        """A compiled function has let these optimizers step, and gave these losses."""
        self._asked = True
        exact = self._session.engine.guard.run("loss", losses) or []
        known = [moved for moved, _ in exact]
        self._losses = [one for one in self._losses if one[0] not in known] + exact
        for name in names:
            if self._ends_before([name]) or not self._open:  # it takes several
                self._session.engine.guard.run("steps", self._begin_unseen)
            self._note_step(name)

    def _begin_unseen(self) -> None:
        """Of a step within a call that takes several, nothing is read: it counts."""
        self._session.engine.enter_train_step()
        self._open, self._asked, self._losses, self._due, self._sink = True, False, [], 0, None
        self._pending = {}

    # -- the end of a step ------------------------------------------------------------------------

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
        self.compiled.stop()
        if self._open and (self._stepped or (self._asked and not self._expected)):
            self._open = False
            self._session.engine.guard.run("steps", self._finish)
        self._stack.close()


def ids_of(sources: Any) -> set[int]:
    """``id`` of what gradients are by."""
    import keras

    return {id(one) for one in keras.tree.flatten(sources)}


def trained(sources: Any) -> bool:
    """Whether gradients are by variables, and not by what enters a model (a penalty, a saliency)."""
    import keras
    import tensorflow as tf

    return any(isinstance(one, keras.Variable | tf.Variable) for one in keras.tree.flatten(sources))
