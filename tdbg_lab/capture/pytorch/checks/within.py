"""Functions that a loss of the program's own calls: they tell what it compares, which its class does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional as F  # noqa: N812 - everybody calls it so
from torch.overrides import TorchFunctionMode

from tdbg_lab.capture.pytorch.checks.predictions import WEIGHTED, PredictionProbe
from tdbg_lab.capture.pytorch.function_modes import leave
from tdbg_lab.records import LossKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tdbg_lab.capture.engine import Engine

__all__ = ["WithinLoss"]

_MAX_CALLS = 4
_FUNCTIONS = {
    F.cross_entropy: ("cross_entropy", LossKind.LOGITS),
    F.nll_loss: ("nll_loss", LossKind.LOG_PROBABILITIES),
    F.binary_cross_entropy: ("binary_cross_entropy", LossKind.YES_PROBABILITIES),
    F.binary_cross_entropy_with_logits: ("binary_cross_entropy_with_logits", LossKind.YES_LOGITS),
    F.mse_loss: ("mse_loss", LossKind.DISTANCE),
    F.l1_loss: ("l1_loss", LossKind.DISTANCE),
    F.smooth_l1_loss: ("smooth_l1_loss", LossKind.DISTANCE),
    F.huber_loss: ("huber_loss", LossKind.DISTANCE),
}
_IGNORED = -100
"""Default of ``ignore_index``."""


class _Watching(TorchFunctionMode):
    """Passes every call on unchanged, and shows the arguments of those that are losses."""

    def __init__(self, see: Callable[..., None]) -> None:
        super().__init__()
        self._see = see

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Called instead of each function."""
        kwargs = kwargs or {}
        known = _FUNCTIONS.get(func)
        if known is not None:
            self._see(*known, args, kwargs)
        return func(*args, **kwargs)


class WithinLoss:
    """Facts about what is given to functions within one loss: ``check/loss/<class>:<function>/...``.

    It looks only at saved steps, from `begin` to `end`, which are called around the forward of the loss.

    Parameters
    ----------
    sure
        Whether nothing compiled can run now: a function mode would compile it anew.
    """

    def __init__(self, engine: Engine, name: str, sure: Callable[[], bool]) -> None:
        self._engine = engine
        self._name = name
        self._sure = sure
        self._probes: dict[str, PredictionProbe] = {}
        self._calls: dict[str, int] = {}
        self._mode: _Watching | None = None

    def begin(self, *_: Any) -> None:
        """Pre-hook of the loss."""
        self.end()
        engine = self._engine
        if engine.open and engine.mask & engine.costly and self._sure():
            self._calls.clear()
            self._mode = _Watching(self._seen)  # before it is entered: an interrupt may come
            self._mode.__enter__()  # type: ignore[no-untyped-call]

    def end(self) -> None:
        """Forward hook of the loss, called when it raised, too. Idempotent."""
        leave(self._mode)
        self._mode = None

    def _seen(self, function: str, kind: LossKind, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        with torch._C.DisableTorchFunction():  # noqa: SLF001
            self._engine.guard.run("check/loss", self._take, function, kind, args, kwargs)

    def _take(self, function: str, kind: LossKind, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        count = self._calls[function] = self._calls.get(function, 0) + 1
        if count > _MAX_CALLS:
            return
        name = f"{self._name}:{function}" + (f":{count - 1}" if count > 1 else "")
        probe = self._probes.get(name)
        if probe is None:
            probe = self._probes[name] = PredictionProbe(self._engine, name, kind)
        probe.ignored = kwargs.get("ignore_index", _IGNORED)
        probe.weights = kwargs.get(WEIGHTED.get(kind, ""))
        given = (*args[:2], *(kwargs[one] for one in ("input", "target") if one in kwargs))
        probe.take(given)
