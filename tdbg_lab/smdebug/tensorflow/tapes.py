"""Loops with `tf.GradientTape`: each recording of a wrapped tape is a step.

The tape is given back as it came; three methods of this one tape are replaced, never its class. Inside of a
``tf.function`` see `tdbg_lab.smdebug.tensorflow.compiled_tapes`.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import keras

from tdbg_lab.capture.keras.functions import is_eager
from tdbg_lab.capture.keras.watch import watch
from tdbg_lab.records import Kind
from tdbg_lab.smdebug.tensorflow.names import gradient_name, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tdbg_lab.smdebug.tensorflow.compiled_tapes import CompiledTapes
    from tdbg_lab.smdebug.tensorflow.keras import KerasHook
    from tdbg_lab.smdebug.tensorflow.passes import Pass

__all__ = ["TapeWatch"]

_MARK = "_tdbg_lab_hook"
_COMPILED = (
    "a gradient tape inside a graph is not seen, because its tensors have no values there, unless it is the "
    "graph of a tf.function that was not called before the hook was made"
)


class TapeWatch:
    """Watches the tapes of one hook."""

    def __init__(self, hook: KerasHook) -> None:
        self._hook = hook
        self._stack = ExitStack()
        self._sink: Pass | None = None
        self._compiled: CompiledTapes | None = None
        self._within_step = False
        if keras.backend.backend() == "tensorflow":
            from tdbg_lab.smdebug.tensorflow.compiled_tapes import CompiledTapes

            self._compiled = CompiledTapes(hook, self)

    def close(self) -> None:
        """Watch no function any longer. Idempotent."""
        if self._compiled is not None:
            self._compiled.stop()

    @contextmanager
    def within_step(self) -> Iterator[None]:
        """What is recorded belongs to the step that has begun."""
        self._within_step = True
        try:
            yield
        finally:
            self._within_step = False

    def wrap(self, tape: Any) -> Any:
        """Replace what begins and ends a recording, and what computes gradients."""
        hook = self._hook
        if not all(hasattr(tape, name) for name in ("_push_tape", "_pop_tape", "gradient")):
            hook.logger.warning(
                "wrap_tape takes a tf.GradientTape, not a %s; it is not watched.", type(tape).__name__
            )
        elif getattr(tape, _MARK, None) is not hook:
            setattr(tape, _MARK, hook)
            tape._push_tape = self._push(tape._push_tape)  # noqa: SLF001 - what begins a recording
            tape._pop_tape = self._pop(tape._pop_tape)  # noqa: SLF001
            tape.gradient = self._gradient(tape.gradient)
        return tape

    def _push(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def push() -> Any:
            if is_eager():
                if not self._within_step:
                    self._hook.begin_tape_step()  # before the tape records: a stop request leaves it here
                self._hook.guard.run("outputs", self._begin)
            elif not self._hook.guard.run("tape", self._note_traced):
                self._hook.guard.notice("tape", _COMPILED)
            return original()

        return push

    def _pop(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def pop() -> Any:
            self._stack.close()
            return original()

        return pop

    def _gradient(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def gradient(target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
            found = original(target, sources, *args, **kwargs)
            if self._hook.saving and is_eager():
                self._hook.guard.run("gradients", self._take, target, sources, found)
            return found

        return gradient

    def _note_traced(self) -> bool:
        return self._compiled is not None and self._compiled.recorded()

    def _begin(self) -> None:
        hook = self._hook
        self._stack.close()  # of a recording that was left by an exception
        names = hook.fresh_names()
        if names is None or not hook.saving:
            return
        self._sink = hook.new_pass(batch=False)
        self._stack.enter_context(
            watch(
                hook.guard,
                self._sink,
                sites=names.layers,
                models=(),
                optimizers={},
                apply=True,
            )
        )

    def _take(self, target: Any, sources: Any, found: Any) -> None:
        import tensorflow as tf

        hook = self._hook
        names = hook.fresh_names() or hook.loose
        for variable, value in zip(keras.tree.flatten(sources), keras.tree.flatten(found), strict=True):
            names.add(variable)
            name = names.of(variable)
            if value is not None:
                hook.hold_value(gradient_name(name), Kind.GRADIENT, tf.convert_to_tensor(value))
            hook.hold_value(f"weights/{name}", kind_of(name), tf.convert_to_tensor(variable))
        hook.save_optimizers(tf.convert_to_tensor)
        sink, self._sink = self._sink, None
        if sink is not None:
            hook.save_pass(sink)
        if isinstance(target, tf.Tensor):
            hook.hold_value("loss", Kind.LOSS, target)
