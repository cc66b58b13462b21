"""Losses that a gradient scaler has multiplied: what they were before."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import ref

import torch
from torch.amp import GradScaler

from tdbg_lab.capture.pytorch.accumulation import divisor_of
from tdbg_lab.listening import forget, listen

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.listening import Listeners

__all__ = ["ScaledLosses", "weighted"]

_SCALE = (GradScaler, "scale")


class ScaledLosses:
    """Remembers what ``GradScaler.scale`` was given last, until the next backward.

    Parameters
    ----------
    run
        Calls a function with what follows it, and lets no failure through, as `Guard.run` does.
    """

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run
        self._scaler: ref[GradScaler] | None = None
        self._scaled: ref[torch.Tensor] | None = None
        self._plain: torch.Tensor | None = None
        """Detached: it keeps no graph alive."""
        self._divisor = 0
        listen(*_SCALE, self, _telling)

    def detach(self) -> None:
        """Listen no longer. Idempotent."""
        forget(*_SCALE, self)

    def note(self, scaler: GradScaler, given: Any, result: Any) -> None:
        """A scaler made `result` of a loss."""
        if scaler.is_enabled():
            self._run("loss/objective", self._keep, scaler, given, result)

    def _keep(self, scaler: GradScaler, given: Any, result: Any) -> None:
        if isinstance(given, torch.Tensor) and given.numel() == 1:
            self._scaler, self._scaled, self._plain = ref(scaler), ref(result), given.detach()
            self._divisor = divisor_of(given.grad_fn)

    def forget(self) -> None:
        """A backward is over, whosever it was: what comes next may be as it is."""
        self._scaled = self._plain = None

    def plain(self, objective: torch.Tensor) -> torch.Tensor:
        """What ``backward`` is called on, detached and as it was before a scaler multiplied it."""
        scaled, plain = self._scaled, self._plain
        if scaled is None or plain is None:
            return objective.detach()
        if scaled() is objective:
            return plain
        scaler = None if self._scaler is None else self._scaler()
        # Something was done with it since. Asking for the scale waits for the device.
        return objective.detach() / (1.0 if scaler is None else scaler.get_scale())

    def divisor(self, objective: torch.Tensor) -> int:
        """By which number it was divided last, before a scaler multiplied it: see `divisor_of`."""
        if self._scaled is not None and self._scaled() is objective:
            return self._divisor
        return divisor_of(objective.grad_fn)


def weighted(loss: torch.Tensor, weight: Any) -> torch.Tensor:
    """The loss times the gradient that ``backward`` is given to begin with, if it is."""
    return loss * weight.detach() if isinstance(weight, torch.Tensor) else loss


def _telling(original: Callable[..., Any], watches: Listeners[ScaledLosses]) -> Callable[..., Any]:
    @wraps(original)
    def scale(self: GradScaler, outputs: Any) -> Any:
        result = original(self, outputs)
        for watch in watches:
            watch.note(self, outputs, result)
        return result

    return scale
