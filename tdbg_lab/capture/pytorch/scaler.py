"""GradScalers: which steps they left out because gradients were infinite.

A scaler that leaves a step out does not call the optimizer, so no hook fires. ``GradScaler.step`` itself is
watched, from the first step on: a scaler often leaves out its first ones, until it has found its scale.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod, ref

from torch.amp import GradScaler

from tdbg_lab.capture.pytorch.unwrapping import unwrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.optim import Optimizer

    from tdbg_lab.capture.engine import Engine

__all__ = ["ScalerWatch"]


class ScalerWatch:
    """Watches scalers make optimizers step.

    Parameters
    ----------
    on_skipped
        Called with an optimizer whose step was left out, if it is one of `ours`. A method, held weakly,
        like `ours`.
    """

    def __init__(
        self,
        engine: Engine,
        on_skipped: Callable[[Optimizer], None],
        ours: Callable[[Optimizer], bool],
    ) -> None:
        self._engine = engine
        self._on_skipped = WeakMethod(on_skipped)
        self._ours = WeakMethod(ours)
        self._scaler: ref[GradScaler] | None = None
        self.steps_seen = 0
        """Steps of optimizers of ours."""
        self.skipped = 0
        """Steps left out so far."""
        self._last_step = -1
        self.in_a_row = 0
        """Steps left out since the last that was made."""
        self._original = GradScaler.step
        self._telling = _telling(self._original, WeakMethod(self._watch))
        GradScaler.step = self._telling  # type: ignore[method-assign]

    def _watch(self, scaler: GradScaler, optimizer: Optimizer, step: Callable[[], Any]) -> Any:
        """Let `scaler` step, and see whether it did."""
        fused = getattr(optimizer, "_step_supports_amp_scaling", False)
        seen = self.steps_seen
        result = step()
        if seen == self.steps_seen and not fused and self._engine.open:
            self._engine.guard.run("optimizer/skipped_steps", self._skip, scaler, optimizer)
        return result

    def _skip(self, scaler: GradScaler, optimizer: Optimizer) -> None:
        ours, tell = self._ours(), self._on_skipped()
        optimizer = unwrapped(optimizer)
        if ours is None or tell is None or not ours(optimizer):
            return
        self._scaler = ref(scaler)
        self.skipped += 1
        self.in_a_row = 1 if self._last_step != self.steps_seen else self.in_a_row + 1
        self._last_step = self.steps_seen
        tell(optimizer)

    def left_out(self) -> None:
        """An optimizer tells that it has left out the step itself that it was seen to make."""
        self.skipped += 1
        self.in_a_row = self.in_a_row + 1 if self._last_step == self.steps_seen - 1 else 1
        self._last_step = self.steps_seen

    @property
    def scale(self) -> float:
        """Scale of the scaler that left out a step last; 0.0 without one. Waits for its device."""
        scaler = None if self._scaler is None else self._scaler()
        return 0.0 if scaler is None else float(scaler.get_scale())

    def detach(self) -> None:
        """Put the method back as it was, unless somebody has replaced ours meanwhile. Idempotent."""
        if GradScaler.step is self._telling:
            GradScaler.step = self._original  # type: ignore[method-assign]


def _telling(original: Any, weak: WeakMethod[Any]) -> Any:
    @functools.wraps(original)
    def step(self: GradScaler, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        watch = weak()
        if watch is None:
            return original(self, optimizer, *args, **kwargs)
        return watch(self, optimizer, functools.partial(original, self, optimizer, *args, **kwargs))

    return step
