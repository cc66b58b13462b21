"""Functions compiled by ``tf.function`` that record a wrapped tape: each call of one is a step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from tdbg_lab.capture.keras.function_calls import FunctionCalls, Traced, graphs
from tdbg_lab.capture.keras.functions import running
from tdbg_lab.capture.keras.looking import UNSEEN, run_eagerly, why_unseen

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.smdebug.tensorflow.keras import KerasHook
    from tdbg_lab.smdebug.tensorflow.tapes import TapeWatch

__all__ = ["CompiledTapes"]

_SEVERAL = UNSEEN + "it records several tapes in one call, each of which is a step"


@dataclass
class _Recording:
    """What a function does, as it was traced last."""

    graph: Callable[[], Any]
    begun: Counter[Any] = field(default_factory=Counter)
    """Tapes that each part of it records; a part may have been traced more than once."""

    @property
    def tapes(self) -> int:
        """How many it records in a call."""
        return max(self.begun.values())


class CompiledTapes(FunctionCalls):
    """The functions that record tapes of one hook."""

    def __init__(self, hook: KerasHook, tapes: TapeWatch) -> None:
        self._hook = hook
        self._tapes = tapes
        self._known: WeakKeyDictionary[Any, _Recording] = WeakKeyDictionary()
        self.start()

    @property
    def listens(self) -> bool:
        """Whether steps are those of tapes: Keras is not fitting."""
        return not running()

    def recorded(self) -> bool:
        """What is traced now begins to record a tape; whether it is known what that is."""
        traced = Traced.now()
        if traced is None:
            return False
        known = self._known.setdefault(traced.function, _Recording(ref(traced.graph)))
        known.graph = ref(traced.graph)
        known.begun[graphs()[0]] += 1
        return True

    def call(self, original: Callable[..., Any], function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function that records tapes; look at it before when its step is saved."""
        known, hook = self._known.get(function), self._hook
        if known is None:
            return NotImplemented
        for _ in range(known.tapes):
            hook.begin_tape_step()
        if hook.saving:
            why = hook.guard.run("outputs", self._look, known, partial(original, function), args, kwargs)
            if why:
                hook.guard.notice("tape", why)
        return original(function, *args, **kwargs)

    def _look(self, known: _Recording, call: Callable[..., Any], args: Any, kwargs: Any) -> str:
        """Let the hook see what a call would do; why it cannot, or nothing."""
        graph = known.graph()
        why = _SEVERAL if known.tapes > 1 else why_unseen(graph) if graph is not None else ""
        if why or graph is None:
            return why
        with self._tapes.within_step():
            return run_eagerly(call, args, kwargs, graph)
