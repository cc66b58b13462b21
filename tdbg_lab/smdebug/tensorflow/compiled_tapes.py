"""Functions compiled by ``tf.function`` that record a wrapped tape: each call of one is a step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tdbg_lab.capture.keras.function_calls import FunctionCalls, Traced, graphs
from tdbg_lab.capture.keras.functions import running
from tdbg_lab.capture.keras.looking import UNSEEN, Look

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.smdebug.tensorflow.keras import KerasHook
    from tdbg_lab.smdebug.tensorflow.tapes import TapeWatch

__all__ = ["CompiledTapes"]

_SEVERAL = UNSEEN + "it records several tapes in one call, each of which is a step"


@dataclass
class _Recording:
    """What a function does, as it was traced last."""

    look: Look
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
        known = self._known.setdefault(traced.function, _Recording(Look(traced.graph)))
        if known.look.graph is not traced.graph:
            known.look = Look(traced.graph)
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
            if known.tapes > 1:
                known.look.unseen = _SEVERAL
            with self._tapes.within_step():
                hook.guard.run("outputs", known.look.take, partial(original, function), args, kwargs)
            if known.look.unseen:
                hook.guard.notice("tape", known.look.unseen)
        return original(function, *args, **kwargs)
