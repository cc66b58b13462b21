"""The loss of the first step, where a training is found only as its optimizer steps.

So it is with models that call no hooks, as those of GPyTorch, and with optimizers that are made as they
are first needed, as those of Pyro.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.pytorch.scaled import ScaledLosses, weighted
from tdbg_lab.capture.registry import open_handles

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

__all__ = ["FirstLosses"]

_MOST = 256
"""Backward passes without a step of an optimizer, after which nobody waits for one."""


class FirstLosses:
    """Keeps what ``backward`` was called on while nothing is attached to, until an optimizer steps."""

    def __init__(self, guarded: Callable[..., Any]) -> None:
        self._guarded = guarded
        self._scaled = ScaledLosses(self._run)
        self.passes: list[tuple[torch.Tensor, int]] = []
        """What it was called on, detached, and by which number it was divided last."""

    def _run(self, _probe: str, function: Callable[..., Any], *args: Any) -> None:
        """While something is attached to, a session is told of the backward that a scaler is for."""
        if not open_handles():
            self._guarded(function, *args)

    def begin_backward(self, objective: torch.Tensor, weight: Any) -> None:
        """``backward`` is called."""
        if len(self.passes) < _MOST:
            self._guarded(self._keep, objective, weight)

    def _keep(self, objective: torch.Tensor, weight: Any) -> None:
        loss = weighted(self._scaled.plain(objective), weight)
        self.passes.append((loss, self._scaled.divisor(objective)))

    def end_backward(self) -> None:
        """A backward is over."""
        self._scaled.forget()

    def of_step(self) -> torch.Tensor | None:
        """The mean over the passes of the step that is made now, each as it was before it was divided."""
        passes = self.passes
        if not passes or len(passes) == _MOST:
            return None
        losses = [loss for loss, _ in passes]
        total = sum(losses[1:], start=losses[0])
        divided = {divisor for _, divisor in passes} == {len(passes)}
        return total if divided else total / len(passes)

    def forget(self) -> None:
        """An optimizer has stepped."""
        self.passes.clear()

    def detach(self) -> None:
        """Listen no longer. Idempotent."""
        self._scaled.detach()
        self.passes.clear()
