"""GPU memory that goes up during training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.profile.activity_rule import GpuRule
from tdbg_lab.rules.profile.machine import devices
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.sample_log import Samples
    from tdbg_lab.rules.view import RunView

__all__ = ["GPUMemoryIncrease"]

_NEARLY_FULL = 90.0


@rule("gpu_memory_increase", title="GPU memory increase")
@dataclass(frozen=True, kw_only=True)
class GPUMemoryIncrease(GpuRule):
    """Memory of a GPU went up, long after training has begun, and stays up.

    Ours compares the median of the last `window` samples with the highest of the `before` samples before
    them, which begin after `warm_up_s` of training: growth that comes and goes with batches does not count.
    It is a notice while there is room. Steady growth is what the rule on memory leaks looks for.

    With `classic`, the condition of SageMaker Debugger to the letter: after `patience` samples, the mean of
    the last `window` ones is more than `increase` points above that of one sample earlier.
    """

    increase: float = 5.0
    """Rise, in points of percent of the memory."""
    window: int = 10
    """Last samples."""
    before: int = 240
    """Samples before them that are compared with."""
    warm_up_s: float = 60.0
    """Time from the first step on that does not count, s."""
    classic: bool = False
    patience: int = 1000
    """Classic: samples before the rule speaks."""

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("increase", above=0, at_most=100)
        self.require("window", "before", "patience", at_least=1)
        self.require("warm_up_s", at_least=0)

    def judge(self, run: RunView) -> Finding | None:
        """Look at each GPU."""
        for rank, device in devices(run, "gpu_memory"):
            samples = run.samples("gpu_memory", device, rank)
            levels = self._classic_levels(samples) if self.classic else self._levels(run, samples)
            if levels is not None and levels[1] - levels[0] > self.increase:
                return self._found(run, rank, device, *levels)
        return None

    def _classic_levels(self, samples: Samples) -> tuple[float, float] | None:
        values, n = samples.values, self.window
        if len(values) <= max(self.patience, n):
            return None
        return float(values[-n - 1 : -1].mean()), float(values[-n:].mean())

    def _levels(self, run: RunView, samples: Samples) -> tuple[float, float] | None:
        first = run.activity.spans.first_ns if run.activity else None
        if first is None:
            return None
        values = samples.values[samples.time_ns >= first + int(self.warm_up_s * 1e9)]
        held = 4 * self.window if run.active else 0  # what it rose from may be a while ago
        before = values[-self.window - self.before - held : -self.window - held]
        if len(before) < self.before // 4 or not len(before):
            return None
        return float(np.percentile(before, 99)), float(np.median(values[-self.window :]))

    def _found(self, run: RunView, rank: int, device: str, low: float, high: float) -> Finding:
        full = high >= _NEARLY_FULL
        return self.finding(
            run.step,
            f"Memory of {device} went up by {high - low:.1f} points, to {high:.0f}%"
            f"{': there is hardly any room left' if full else ''}.",
            severity=Severity.WARNING if full or self.classic else Severity.NOTICE,
            evidence={
                "gpu_memory_before_percent": low,
                "gpu_memory_percent": high,
                "increase_points": high - low,
                "device": device,
            },
            advice=(
                "Keep numbers, not tensors: total += loss.item(); a tensor holds its whole graph.",
                "Evaluate under torch.no_grad(), and with batches no larger than in training.",
                "Near the limit: smaller batches, activation checkpointing, mixed precision.",
            ),
            view=ViewRef("timeline", {}),
            rank=rank if len(run.ranks) > 1 else None,
        )
