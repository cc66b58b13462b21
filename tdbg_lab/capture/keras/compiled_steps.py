"""Training steps that are a ``tf.function``: those that are saved are looked at before they run.

Inside a compiled function tensors have no values. What it does is learnt while TensorFlow traces it: which
optimizers it lets step, and which of its results are losses. To see more, it is run eagerly with the same
arguments, and every variable gets the value back that it had; then the step runs as it would without us.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import tensorflow as tf

from tdbg_lab.capture.keras.function_calls import LONG, FunctionCalls, Traced, graphs, in_long_call
from tdbg_lab.capture.keras.looking import UNSEEN, Look

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.keras.tape import TapeLoop

__all__ = ["CompiledSteps"]

_SEVERAL = UNSEEN + "it takes several steps in one call; let it take one"


@dataclass
class _Step:
    """What a function does, as it was traced last."""

    look: Look
    applied: dict[Any, Counter[str]] = field(default_factory=dict)
    """How often each part of it lets each optimizer step; a part may have been traced more than once."""
    losses: list[tuple[set[int], Any]] = field(default_factory=list)
    """With the ``id`` of what their gradients are by."""

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
            self._step(traced).applied.setdefault(graphs()[0], Counter())[name] += 1

    def asked(self, moved: set[int], loss: Any, traced: Traced) -> None:
        """What is traced computes the gradients of a loss by variables, given by ``id``."""
        self._step(traced).losses.append((moved, loss))

    def _step(self, traced: Traced) -> _Step:
        """What is known of the function that is traced; a part that was traced before is not traced anew."""
        step = self._steps.get(traced.function)
        if step is None:
            step = self._steps[traced.function] = _Step(Look(traced.graph))
        elif step.look.graph is not traced.graph:
            step.look, step.losses = Look(traced.graph), []
        return step

    # -- when a function is called ----------------------------------------------------------------

    def call(self, original: Callable[..., Any], function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function that takes a step; look at it before when that is saved."""
        loop, step = self._loop, self._steps.get(function)
        if step is None or not loop.listens:
            return NotImplemented
        names = step.names
        if loop.begin(names):
            if len(set(names)) < len(names):
                step.look.unseen = _SEVERAL
            loop.look(partial(step.look.take, partial(original, function), args, kwargs))
        result = original(function, *args, **kwargs)
        loop.passed(names, partial(_losses_in, step, result))
        if step.look.unseen:
            loop.notice(step.look.unseen)
        return result


def _losses_in(step: _Step, result: Any) -> list[tuple[set[int], Any]]:
    """Those losses of a step that the function returns: their values."""
    graph = step.look.graph
    flat = [one for one in tf.nest.flatten(result, expand_composites=True) if one is not None]
    if graph is None or len(flat) != len(graph.outputs):
        return []
    returned = {id(_behind(one)): value for one, value in zip(graph.outputs, flat, strict=True)}
    return [(moved, returned[id(loss)]) for moved, loss in step.losses if id(loss) in returned]


def _behind(output: Any) -> Any:
    """The tensor that a function returns: its output is another one, of the same value."""
    return output.op.inputs[0] if output.op.type == "Identity" else output
