"""Who calls which ``tf.function``, and which one is being traced."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tdbg_lab.listening import forget, listen

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.listening import Listeners

__all__ = ["LONG", "FunctionCalls", "Traced", "graphs", "in_keras", "in_long_call"]

_log = logging.getLogger("tdbg_lab")
_KIND: Any = type(tf.function(lambda: None))
_LOOP, _DATA_SET = "WhileBodyFuncGraph", "Dataset_"
LONG = "a loop that runs within one call of a tf.function is not seen: let each call take one step"
"""What is said where `in_long_call`."""

_calling: list[Any] = []
"""The outermost function that is being called now, if anybody listens; None for one that is Keras's."""


@dataclass(frozen=True)
class Traced:
    """The outermost ``tf.function`` that is being traced, and its graph."""

    function: Any
    graph: Any

    @classmethod
    def now(cls) -> Traced | None:
        """What is traced now, while anybody listens; None outside of all functions of the program."""
        built = graphs()
        return cls(_calling[0], built[-1]) if _calling and _calling[0] is not None and built else None


def in_long_call() -> bool:
    """Whether what is traced now is repeated within one call of the function."""
    return any(type(one).__name__ == _LOOP or one.name.startswith(_DATA_SET) for one in graphs())


def in_keras() -> bool:
    """Whether a function is being called that Keras compiles to fit, while anybody listens."""
    return _calling == [None]


class FunctionCalls:
    """Listens to the calls of every ``tf.function``, from `start` until `stop`."""

    def start(self) -> None:
        """Listen from now on."""
        listen(_KIND, "__call__", self, _telling)

    def stop(self) -> None:
        """Listen no longer. Idempotent."""
        forget(_KIND, "__call__", self)

    @property
    def listens(self) -> bool:
        """Whether it wants to know what functions do now."""
        return True

    def call(self, original: Callable[..., Any], function: Any, args: Any, kwargs: Any) -> Any:  # noqa: ARG002
        """Call a function in place of `original`, or leave it to others: `NotImplemented`."""
        return NotImplemented


def _telling(original: Callable[..., Any], listeners: Listeners[FunctionCalls]) -> Callable[..., Any]:
    @wraps(original)
    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        if _calling or not tf.executing_eagerly() or not any(one.listens for one in listeners):
            return original(function, *args, **kwargs)
        own = _is_own(function)
        _calling.append(None if own else function)
        try:
            if own:
                return original(function, *args, **kwargs)
            if not function.experimental_get_tracing_count():
                _trace(function, args, kwargs)
            for one in listeners:
                result = one.call(original, function, args, kwargs)
                if result is not NotImplemented:
                    return result
            return original(function, *args, **kwargs)
        finally:
            _calling.clear()

    return call


def _is_own(function: Any) -> bool:
    """Whether it is one that Keras compiles, to fit, or we, to look at what Keras fits."""
    module = getattr(function.python_function, "__module__", None) or ""
    return module.partition(".")[0] in {"keras", __name__.partition(".")[0]}


def _trace(function: Any, args: Any, kwargs: Any) -> None:
    """Let a function be traced before its first call, so that it is known what that will do."""
    try:
        function.get_concrete_function(*args, **kwargs)
    except Exception:  # noqa: BLE001 - the call itself will say what is wrong
        _log.debug("A function could not be traced before its call.", exc_info=True)


def graphs() -> list[Any]:
    """The graphs that are being built, the innermost first, each within the next."""
    found, graph = [], tf.compat.v1.get_default_graph()
    while hasattr(graph, "outer_graph"):
        found.append(graph)
        graph = graph.outer_graph
    return found
