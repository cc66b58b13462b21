"""Copies from the host to a device: what a training waits in ``Tensor.to``, ``cuda`` and ``pin_memory``.

While a model that lives on a device is attached to, these methods are replaced by ones that look at the
clock and call them; they are put back when the last handle goes. On a CPU nothing is replaced.
"""

from __future__ import annotations

import functools
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import torch

from tdbg_lab.listening import forget, listen
from tdbg_lab.profiler.spans import OWN_PHASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.parameters import ParameterProbe
    from tdbg_lab.listening import Listeners

__all__ = ["CopyWatch"]

_METHODS = ("to", "cuda", "pin_memory")
_LEAST_NS = 20_000
"""What is shorter stays with the phase around it: a copy that was only put into the queue of the device."""


class CopyWatch:
    """The phase ``copy`` of one training. Only what the thread does that attached counts.

    Parameters
    ----------
    parameters
        Of the models; they tell whether training happens on a device.
    """

    def __init__(self, engine: Engine, parameters: ParameterProbe) -> None:
        self._engine = engine
        self._thread = get_ident()
        if engine.phases is not None and engine.guard.run("copies", _on_device, parameters):
            for name in _METHODS:
                listen(torch.Tensor, name, self, _timed)

    def detach(self) -> None:
        """Listen no longer. Idempotent."""
        for name in _METHODS:
            forget(torch.Tensor, name, self)

    def note(self, tensor: torch.Tensor, result: torch.Tensor, begin: int, now: int) -> None:
        """A method made another tensor of a tensor; times by `time.perf_counter_ns`."""
        if get_ident() == self._thread and self._engine.open:
            self._engine.guard.run("spans", self._take, tensor, result, begin, now)

    def _take(self, tensor: torch.Tensor, result: torch.Tensor, begin: int, now: int) -> None:
        with torch._C.DisableTorchFunction():  # noqa: SLF001 - modes are not to see us
            if not tensor.is_cpu or (result.is_cpu and not result.is_pinned()):  # not on its way to a device
                return
        phases = self._engine.phases
        if phases is None:
            return
        around = phases.current
        if around is None or (around in OWN_PHASES and around != "capture"):  # the user's keep their time
            phases.ended("copy", begin, now, self._engine.step)


def _on_device(parameters: ParameterProbe) -> bool:
    return any(not value.is_cpu for _, value in parameters.live())


def _timed(original: Callable[..., Any], listeners: Listeners[CopyWatch]) -> Callable[..., Any]:
    @functools.wraps(original)
    def timed(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return original(tensor, *args, **kwargs)
        begin = perf_counter_ns()
        result = original(tensor, *args, **kwargs)
        now = perf_counter_ns()
        if now - begin >= _LEAST_NS and result is not tensor:
            for watch in listeners:
                watch.note(tensor, result, begin, now)
        return result

    return timed
