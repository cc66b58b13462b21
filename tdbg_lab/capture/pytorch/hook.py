"""Hooks of layers and at the boundaries of a step."""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import torch

from tdbg_lab.capture.guard import Guard
from tdbg_lab.capture.pytorch.fleeting import Fleeting
from tdbg_lab.capture.pytorch.frames import compiler, leave_out, outside
from tdbg_lab.capture.pytorch.graphs import CAN_CAPTURE, within_graph
from tdbg_lab.capture.pytorch.moment import not_for_real
from tdbg_lab.errors import TrainingStopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.stance import EagerStance

__all__ = ["BoundaryHook", "EndHook", "ModuleHook", "StepHook"]


_OutsideFunctionModes: Any = torch._C.DisableTorchFunction  # noqa: SLF001


class _Hook(Fleeting):
    """Base: `owner` is kept alive as long as the hook hangs somewhere."""

    __slots__ = ("__weakref__", "owner")

    def __init__(self, owner: object) -> None:
        self.owner = owner


class ModuleHook(_Hook):
    """Calls a probe with what passes through a module, when one of its collections is due.

    Inside compiled code it is nothing: whether the compiler is at work is a constant there.
    """

    __slots__ = ("engine", "mask", "probe", "take")

    def __init__(
        self, owner: object, engine: Engine, mask: int, probe: str, take: Callable[..., None]
    ) -> None:
        super().__init__(owner)
        self.engine = engine
        self.mask = mask
        self.probe = probe
        self.take = take

    def __call__(self, module: Any, *values: Any) -> None:
        """Forward hook (arguments, output), or pre-hook (arguments, keyword arguments)."""
        if torch.compiler.is_dynamo_compiling() or torch.compiler._is_compiling_flag:  # noqa: SLF001
            return
        engine = self.engine
        due = engine.module_mask & self.mask
        if due and not not_for_real():
            engine.layers_seen = True
            if not CAN_CAPTURE or not within_graph(engine):
                # Parts of a model may run in threads (DataParallel does that). What we ask of a tensor
                # must not pass through function modes: the one that sees functional activations is ours.
                with engine.lock, _OutsideFunctionModes():
                    engine.guard.run(self.probe, self.take, module, values, due)


class BoundaryHook(_Hook):
    """Calls a function at a boundary: a root forward, a loss.

    Inside compiled code it only notes that it was there, which costs no guard and no graph break. (The
    compiler must find ``torch.compiler.is_dynamo_compiling`` by that name: imported alone, it is false to it
    where a function of several graphs calls us. The flag says the same of an export, which it does not see.)

    PyTorch calls the hooks of a model that is compiled in place one by one. The compiler is told to leave
    them as they are there: it would compile each, and look its guards through at every step.
    """

    __slots__ = ("after", "compiled", "engine", "function", "probe", "stance")

    def __init__(
        self,
        owner: object,
        engine: Engine,
        probe: str,
        function: Callable[..., None],
        after: Callable[[], None] | None = None,
        *,
        stance: EagerStance | None = None,
    ) -> None:
        super().__init__(owner)
        self.engine = engine
        self.probe = probe
        self.function = function
        self.after = after
        """Called unguarded: it may stop the training."""
        self.stance = stance
        """Is told whether compiled code runs around the hook."""
        self.compiled = False
        """Whether compiled code has passed here, unseen."""
        for called in (function, after):
            leave_out(called)

    def __call__(self, *values: Any) -> None:
        """Whatever the framework passes is passed on."""
        if torch.compiler.is_dynamo_compiling() or torch.compiler._is_compiling_flag:  # noqa: SLF001
            self.pass_compiled(values)
            return
        engine = self.engine
        if not engine.open:
            return
        if self.stance is not None:
            compiling = compiler()
            self.stance.within = compiling is not None and compiling is not False
        if CAN_CAPTURE and torch.cuda._initialized and within_graph(engine):  # noqa: SLF001
            return
        guard = engine.guard
        if self.probe not in guard.problems:
            within = guard.began_ns
            guard.began_ns = started = within or perf_counter_ns()
            try:  # what `Guard.run` does, for one call less at each boundary of each step
                self.function(*values)
            except TrainingStopped:
                raise
            except Exception as error:  # noqa: BLE001
                guard.failed(self.probe, error)
            finally:
                guard.began_ns = within
                if not within:
                    guard.spent_ns += perf_counter_ns() - started
        if self.after is not None:
            self.after()

    def pass_compiled(self, _values: tuple[Any, ...]) -> None:
        """Called instead within compiled code."""
        self.compiled = True


class EndHook(_Hook):
    """Ends what was begun around a forward, whatever has failed since; what it calls cannot fail."""

    __slots__ = ("function",)

    def __init__(self, owner: object, function: Callable[[], None]) -> None:
        super().__init__(owner)
        self.function = function

    def __call__(self, *_: Any) -> None:
        """Whatever the framework passes does not matter."""
        if not (torch.compiler.is_dynamo_compiling() or torch.compiler._is_compiling_flag):  # noqa: SLF001
            self.function()


class StepHook(BoundaryHook):
    """Calls a function before or after an optimizer step, in compiled code too.

    ``Optimizer.step`` breaks the graph itself, next to where its hooks are called, so one more break
    forbids nothing that was possible, and what the optimizer computes stays compiled.
    """

    __slots__ = ()

    def pass_compiled(self, values: tuple[Any, ...]) -> None:
        """Called within compiled code."""
        outside(self, *values)


leave_out(BoundaryHook.__call__, deeply=False)
for _called in (within_graph, Guard.run, Guard.failed, Guard.notice):
    leave_out(_called)
