"""Follows every gradient tape of the program, where it wraps none itself."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

import tensorflow as tf

from tdbg_lab.capture.keras.function_calls import Traced
from tdbg_lab.capture.keras.tape import TapeLoop, ids_of, trained

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.keras.session import KerasSession

__all__ = ["Taping"]

_MAX_EARLIER = 16


class Taping:
    """Tells the session that was followed last of each ``tf.GradientTape``, until `stop`."""

    def __init__(self) -> None:
        self._session: ref[KerasSession] | None = None
        self._stacks: WeakKeyDictionary[Any, ExitStack] = WeakKeyDictionary()
        """What ends with each tape."""
        self._earlier: deque[tuple[set[int], Any, Traced]] = deque(maxlen=_MAX_EARLIER)
        """Gradients that functions compute which were traced while nothing was followed."""
        self._originals: dict[str, Callable[..., Any]] = {}
        for name, around in (
            ("__enter__", self._enter),
            ("__exit__", self._exit),
            ("gradient", self._gradient),
        ):
            original = self._originals[name] = getattr(tf.GradientTape, name)
            convert_not = tf.autograph.experimental.do_not_convert
            setattr(tf.GradientTape, name, convert_not(wraps(original)(around(original))))

    def follow(self, session: KerasSession) -> None:
        """Tell this session from now on, and what functions were found to do before."""
        loop = session.loop = session.loop or TapeLoop(session)
        self._session = ref(session)
        loop.hang()
        for moved, loss, traced in self._earlier:
            loop.compiled.asked(moved, loss, traced)
        self._earlier.clear()

    def stop(self) -> None:
        """Give the tapes back. Idempotent."""
        for name, original in self._originals.items():
            setattr(tf.GradientTape, name, original)

    def _loop(self) -> TapeLoop | None:
        session = None if self._session is None else self._session()
        return None if session is None else session.loop

    def _enter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def enter(tape: Any) -> Any:
            result = original(tape)
            loop = self._loop()
            if loop is not None:
                loop.enter(self._stacks.setdefault(tape, ExitStack()))
            return result

        return enter

    def _exit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def leave(tape: Any, *error: Any) -> Any:
            stack = self._stacks.pop(tape, None)
            if stack is not None:
                stack.close()
            return original(tape, *error)

        return leave

    def _gradient(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def gradient(tape: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
            loop = self._loop()
            if loop is not None:
                loop.ask(sources)
            result = original(tape, target, sources, *args, **kwargs)
            if loop is not None:
                loop.take(target, sources, result)
            elif self._session is None and trained(sources) and (traced := Traced.now()) is not None:
                self._earlier.append((ids_of(sources), target, traced))
            return result

        return gradient
