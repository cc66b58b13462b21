"""A look into a compiled function: it runs once more, as Python, and leaves everything as it was."""

from __future__ import annotations

import logging
import re
import sys
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["UNSEEN", "Look"]

_DRAWING = re.compile(
    "RandomUniform|RandomUniformInt|RandomStandardNormal|TruncatedNormal|RandomShuffle|RandomGamma"
    "|RandomPoissonV2|Multinomial|ParameterizedTruncatedNormal"
)
"""Operations that draw numbers; run once more, they would move those that are to come on."""
_ACTING = re.compile(
    "Iterator|PyFunc|EagerPyFunc|PrintV2|Print$|Write|Summary|Save|Queue|Stack|Barrier|LookupTable.*(Insert|Import)"
)
"""Operations that do more than compute: done twice, they would show."""
UNSEEN = "layers, gradients and losses inside a tf.function are not seen on saved steps: "
_SEEDED = (
    UNSEEN + "it draws numbers from tf.random with a seed, and to look at it would change those to come; "
    "draw them outside, or from a tf.random.Generator"
)


class Look:
    """The looks into one function, as it was traced to a graph.

    Attributes
    ----------
    unseen : str
        Why it is not looked at, now or any more; empty where it is.
    """

    def __init__(self, graph: Any) -> None:
        self._graph = ref(graph)
        self._judged = False
        self.unseen = ""

    @property
    def graph(self) -> Any:
        """The graph; None when it is gone."""
        return self._graph()

    def take(self, call: Callable[..., Any], args: Any, kwargs: Any) -> bool:
        """Run the function as Python, if it may, and put back what it changes; whether that went well."""
        graph = self.graph
        if graph is None:
            return False
        if not self.unseen and not self._judged:
            self._judged, self.unseen = True, _why_unseen(graph)
        if not self.unseen:
            self.unseen = _run_eagerly(call, args, kwargs, graph)
        return not self.unseen


def _why_unseen(graph: Any) -> str:
    """Why a function with this graph may not run once more; empty if it may."""
    kinds = _kinds(graph)
    acting = sorted(filter(_ACTING.match, kinds))
    if acting:
        return f"{UNSEEN}it does more than compute ({acting[0]}), which would be done twice"
    return _SEEDED if _is_seeded() and any(map(_DRAWING.fullmatch, kinds)) else ""


def _run_eagerly(call: Callable[..., Any], args: Any, kwargs: Any, graph: Any) -> str:
    """Call a function of this graph as Python, and put back what it changes; why that fails, or nothing."""
    before = tf.config.functions_run_eagerly()
    with _variables_kept(graph), _quiet():
        tf.config.run_functions_eagerly(True)
        try:
            args, kwargs = tf.nest.map_structure(_argument, (args, kwargs))
            call(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever a program does that is not compiled
            return f"{UNSEEN}it does not run eagerly ({type(error).__name__}: {error})"[:400]
        finally:
            tf.config.run_functions_eagerly(before)
    return ""


@contextmanager
def _variables_kept(graph: Any) -> Iterator[None]:
    """Give all variables that a graph refers to the values back that they have now."""
    handles = [one for one in graph.external_captures if one.dtype == tf.resource]
    kept = [(handle, _value(handle)) for handle in handles]
    try:
        yield
    finally:
        for handle, value in kept:
            if value is not None:
                tf.raw_ops.AssignVariableOp(resource=handle, value=value)


def _value(handle: Any) -> Any:
    """The value of a variable; None of another resource."""
    held = handle._handle_data.shape_and_type  # noqa: SLF001 - nothing else tells its type
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=held[0].dtype) if held else None


@contextmanager
def _quiet() -> Iterator[None]:
    """Print and log nothing from this thread: what it says while traced is said already."""
    shown, log, thread = sys.stdout, logging.getLogger("tensorflow"), get_ident()

    def of_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    sys.stdout = _Quiet(shown)
    log.addFilter(of_others)
    try:
        yield
    finally:
        sys.stdout = shown
        log.removeFilter(of_others)


class _Quiet:
    """A stream that takes nothing from the thread that made it."""

    def __init__(self, shown: Any) -> None:
        self._shown = shown
        self._thread = get_ident()

    def write(self, text: str) -> int:
        """Write what other threads write."""
        return len(text) if get_ident() == self._thread else self._shown.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shown, name)


def _argument(value: Any) -> Any:
    """What a traced function has instead: arrays are tensors there."""
    return tf.convert_to_tensor(value) if isinstance(value, np.ndarray | np.generic) else value


def _kinds(graph: Any) -> set[str]:
    """Kinds of the operations of a graph, with those of the functions that it calls."""
    definition = graph.as_graph_def()
    inner = [node.op for function in definition.library.function for node in function.node_def]
    return {*(node.op for node in definition.node), *inner}


def _is_seeded() -> bool:
    from tensorflow.python.eager import context

    return context.global_seed() is not None
