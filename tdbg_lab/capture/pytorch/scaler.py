"""GradScalers: which steps they left out because gradients were infinite.

A scaler that leaves a step out does not call the optimizer, so no hook fires. The scaler is found
once, on the call stack of the first step it does make, and its ``step`` is watched from then on.
"""

from __future__ import annotations

import sys
from math import log
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod, ref

from torch.amp import GradScaler

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from torch.optim import Optimizer

    from tdbg_lab.capture.engine import Engine

__all__ = ["ScalerWatch"]

_MAX_FRAMES = 16


class ScalerWatch:
    """Watches the scalers that step our optimizers."""

    def __init__(self, engine: Engine, on_skipped: Callable[[Optimizer, int], None]) -> None:
        self._engine = engine
        self._on_skipped = WeakMethod(on_skipped)
        self._looked: set[int] = set()
        self._scalers: list[ref[GradScaler]] = []
        self._steps_seen = 0
        self.skipped = 0
        """Steps left out so far."""
        self._last_step = -1
        self.in_a_row = 0
        """Steps left out since the last that was made."""

    def look_for(self, optimizer: Optimizer) -> None:
        """Note that `optimizer` steps; the first time, find the scaler that makes it step."""
        self._steps_seen += 1
        if id(optimizer) in self._looked:
            return
        self._looked.add(id(optimizer))
        scaler = _on_stack(sys._getframe(1))  # noqa: SLF001
        if scaler is not None and all(one() is not scaler for one in self._scalers):
            self._watch(scaler)
            before = _skipped_before(scaler)
            if before:
                self._skip(optimizer, before)

    def _watch(self, scaler: GradScaler) -> None:
        original = scaler.step
        self._scalers.append(ref(scaler))

        def step(optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            fused = getattr(optimizer, "_step_supports_amp_scaling", False)
            seen = self._steps_seen
            result = original(optimizer, *args, **kwargs)
            if seen == self._steps_seen and not fused and self._engine.open:
                self._engine.guard.run("optimizer/skipped_steps", self._skip, optimizer, 1)
            return result

        scaler.step = step  # type: ignore[method-assign]

    def _skip(self, optimizer: Optimizer, count: int) -> None:
        self.skipped += count
        self.in_a_row = count if self._last_step != self._steps_seen else self.in_a_row + count
        self._last_step = self._steps_seen
        tell = self._on_skipped()
        if tell is not None:
            tell(optimizer, self.skipped)

    @property
    def scale(self) -> float:
        """Scale of the scaler that was found last; 0.0 without one. Waits for its device."""
        scaler = next((one for weak in reversed(self._scalers) if (one := weak()) is not None), None)
        return 0.0 if scaler is None else float(scaler.get_scale())

    def detach(self) -> None:
        """Give the scalers back as they were."""
        for one in self._scalers:
            scaler = one()
            if scaler is not None:
                scaler.__dict__.pop("step", None)
        self._scalers.clear()


def _on_stack(frame: FrameType | None) -> GradScaler | None:
    """The scaler whose ``step`` is running, if one is."""
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return None
        if frame.f_code.co_name == "step":
            found = frame.f_locals.get("self")
            if isinstance(found, GradScaler):
                return found
        frame = frame.f_back
    return None


def _skipped_before(scaler: GradScaler) -> int:
    """Steps left out before we saw the scaler: each lowered the scale by the same factor."""
    scale, start = scaler.get_scale(), float(scaler._init_scale)  # noqa: SLF001
    factor = scaler.get_backoff_factor()
    if not 0 < scale < start or not 0 < factor < 1:
        return 0
    return round(log(scale / start) / log(factor))
