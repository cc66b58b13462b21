"""Training steps that are a ``tf.function``: those that are saved are looked at before they run.

Inside a compiled function tensors have no values. What it does is learnt while TensorFlow traces it: which
optimizers it lets step, and which of its results are losses. To see more, it is run eagerly with the same
arguments, and every variable gets the value back that it had; then the step runs as it would without us.
"""

from __future__ import annotations

import logging
import re
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from threading import get_ident
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

import numpy as np
import tensorflow as tf

from tdbg_lab.listening import forget, listen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tdbg_lab.capture.keras.tape import TapeLoop
    from tdbg_lab.listening import Listeners

__all__ = ["LONG", "CompiledSteps", "FunctionCalls", "Traced", "in_keras", "in_long_call"]

_log = logging.getLogger("tdbg_lab")
_KIND: Any = type(tf.function(lambda: None))
_LOOP, _DATA_SET = "WhileBodyFuncGraph", "Dataset_"
_DRAWING = re.compile(
    "RandomUniform|RandomUniformInt|RandomStandardNormal|TruncatedNormal|RandomShuffle|RandomGamma"
    "|RandomPoissonV2|Multinomial|ParameterizedTruncatedNormal"
)
"""Operations that draw numbers; run once more, they would move those that are to come on."""
_ACTING = re.compile(
    "Iterator|PyFunc|EagerPyFunc|PrintV2|Print$|Write|Summary|Save|Queue|Stack|Barrier|LookupTable.*(Insert|Import)"
)
"""Operations that do more than compute: done twice, they would show."""
_UNSEEN = "layers, gradients and losses inside a tf.function are not seen on saved steps: "
LONG = "a loop that runs within one call of a tf.function is not seen: let each call take one step"
_SEVERAL = _UNSEEN + "it takes several steps in one call; let it take one"
_SEEDED = (
    _UNSEEN + "it draws numbers from tf.random with a seed, and to look at it would change those to come; "
    "draw them outside, or from a tf.random.Generator"
)

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
        graphs = _graphs()
        return cls(_calling[0], graphs[-1]) if _calling and _calling[0] is not None and graphs else None


def in_long_call() -> bool:
    """Whether what is traced now is repeated within one call of the function."""
    return any(type(one).__name__ == _LOOP or one.name.startswith(_DATA_SET) for one in _graphs())


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


@dataclass
class _Step:
    """What a function does, as it was traced last."""

    graph: Callable[[], Any]
    """The outermost one, as long as it is there."""
    applied: dict[Any, Counter[str]] = field(default_factory=dict)
    """How often each part of it lets each optimizer step; a part may have been traced more than once."""
    losses: list[tuple[set[int], Any]] = field(default_factory=list)
    """With the ``id`` of what their gradients are by."""
    judged: bool = False
    """It was asked whether it may be looked at."""
    unseen: str = ""
    """Why it is not."""

    @property
    def names(self) -> list[str]:
        """Optimizers that it lets step, as often as it does; none where it computes gradients only."""
        most: Counter[str] = Counter()
        for found in self.applied.values():
            most |= found
        return list(most.elements())


class CompiledSteps(FunctionCalls):
    """The functions that move the models of a loop."""

    def __init__(self, loop: TapeLoop) -> None:
        self._loop = loop
        self._steps: WeakKeyDictionary[Any, _Step] = WeakKeyDictionary()
        self.start()

    @property
    def listens(self) -> bool:
        """Whether steps are the loop's."""
        return self._loop.listens

    # -- while a function is traced ---------------------------------------------------------------

    def applied(self, name: str) -> None:
        """The optimizer of this name is let step by what is traced."""
        if in_long_call():
            self._loop.notice(LONG)
        elif (traced := Traced.now()) is not None:
            self._step(traced).applied.setdefault(_graphs()[0], Counter())[name] += 1

    def asked(self, moved: set[int], loss: Any, traced: Traced) -> None:
        """What is traced computes the gradients of a loss by variables, given by ``id``."""
        self._step(traced).losses.append((moved, loss))

    def _step(self, traced: Traced) -> _Step:
        """What is known of the function that is traced; a part that was traced before is not traced anew."""
        step = self._steps.get(traced.function)
        if step is None:
            step = self._steps[traced.function] = _Step(ref(traced.graph))
        elif step.graph() is not traced.graph:
            step.graph, step.losses, step.judged, step.unseen = ref(traced.graph), [], False, ""
        return step

    # -- when a function is called ----------------------------------------------------------------

    def call(self, original: Callable[..., Any], function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function that takes a step; look at it before when that is saved."""
        loop, step = self._loop, self._steps.get(function)
        if step is None or not loop.listens:
            return NotImplemented
        names = step.names
        if loop.begin(names):
            loop.look(partial(_look, step, original, function, args, kwargs))
        result = original(function, *args, **kwargs)
        loop.passed(names, partial(_losses_in, step, result))
        if step.unseen:
            loop.notice(step.unseen)
        return result


def _look(step: _Step, original: Callable[..., Any], function: Any, args: Any, kwargs: Any) -> bool:
    """Run a function as Python, if it may, and put back what it changes; whether that went well."""
    graph = step.graph()
    if graph is None:
        return False
    if not step.judged:
        step.judged, step.unseen = True, _why_unseen(step, graph)
    if step.unseen:
        return False
    before = tf.config.functions_run_eagerly()
    with _variables_kept(graph), _quiet():
        tf.config.run_functions_eagerly(True)
        try:
            args, kwargs = tf.nest.map_structure(_argument, (args, kwargs))
            original(function, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever a program does that is not compiled
            step.unseen = f"{_UNSEEN}it does not run eagerly ({type(error).__name__}: {error})"[:400]
            return False
        finally:
            tf.config.run_functions_eagerly(before)
    return True


def _why_unseen(step: _Step, graph: Any) -> str:
    """Why a function may not run once more; empty if it may."""
    names = step.names
    if len(set(names)) < len(names):
        return _SEVERAL
    kinds = _kinds(graph)
    acting = sorted(filter(_ACTING.match, kinds))
    if acting:
        return f"{_UNSEEN}it does more than compute ({acting[0]}), which would be done twice"
    return _SEEDED if _is_seeded() and any(map(_DRAWING.fullmatch, kinds)) else ""


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
    """Print nothing from this thread: what it prints while traced is said already."""
    shown = sys.stdout
    sys.stdout = _Quiet(shown)
    try:
        yield
    finally:
        sys.stdout = shown


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


def _graphs() -> list[Any]:
    """The graphs that are being built, the innermost first, each within the next."""
    found, graph = [], tf.compat.v1.get_default_graph()
    while hasattr(graph, "outer_graph"):
        found.append(graph)
        graph = graph.outer_graph
    return found


def _kinds(graph: Any) -> set[str]:
    """Kinds of the operations of a graph, with those of the functions that it calls."""
    definition = graph.as_graph_def()
    inner = [node.op for function in definition.library.function for node in function.node_def]
    return {*(node.op for node in definition.node), *inner}


def _is_seeded() -> bool:
    from tensorflow.python.eager import context

    return context.global_seed() is not None


def _losses_in(step: _Step, result: Any) -> list[tuple[set[int], Any]]:
    """Those losses of a step that the function returns: their values."""
    graph = step.graph()
    flat = [one for one in tf.nest.flatten(result, expand_composites=True) if one is not None]
    if graph is None or len(flat) != len(graph.outputs):
        return []
    returned = {id(_behind(one)): value for one, value in zip(graph.outputs, flat, strict=True)}
    return [(moved, returned[id(loss)]) for moved, loss in step.losses if id(loss) in returned]


def _behind(output: Any) -> Any:
    """The tensor that a function returns: its output is another one, of the same value."""
    return output.op.inputs[0] if output.op.type == "Identity" else output
