"""GPUs with little to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.profile.activity_rule import GpuRule, SampledRule
from tdbg_lab.rules.profile.machine import devices
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["LowGPUUtilization"]

_VERY_LOW = 40.0


@rule("low_gpu_utilization", title="Low GPU utilization")
@dataclass(frozen=True, kw_only=True)
class LowGPUUtilization(SampledRule, GpuRule):
    """A GPU is never much used, goes up and down between idle and busy, or is not used at all.

    Ours looks at the last `window` samples since training has begun, from `least` on. With `classic`, the
    condition of SageMaker Debugger to the letter, from more than `patience` samples on.
    """

    threshold_p95: float = 70.0
    """A GPU whose 95th percentile is lower is under-used, percent."""
    threshold_p5: float = 10.0
    """One whose 5th percentile is lower, and whose 95th is not, goes up and down, percent."""

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("threshold_p95", "threshold_p5", at_least=0, at_most=100)

    def judge(self, run: RunView) -> Finding | None:
        """Look at each GPU; the least used one that is used at all is told first."""
        loads = {
            place: values
            for place in devices(run, "gpu")
            if (values := self.last(run, "gpu", place[1], place[0])) is not None
        }
        used = {place: values for place, values in loads.items() if float(values.max()) > 0}
        if loads and not used:
            return self._unused(run, len(loads))
        found = []
        for (rank, device), values in used.items():
            low, high = float(np.percentile(values, 5)), float(np.percentile(values, 95))
            if high < self.threshold_p95 or (high > self.threshold_p95 and low < self.threshold_p5):
                found.append((high, low, rank, device, values))
        return self._low(run, *min(found, key=lambda one: one[0])) if found else None

    def _unused(self, run: RunView, gpus: int) -> Finding:
        return self.finding(
            run.step,
            f"{'The GPU is' if gpus == 1 else f'All {gpus} GPUs are'} not used at all.",
            evidence={"gpus_count": gpus, "gpu_max_percent": 0.0},
            advice=(
                "Move the model and each batch to it: model.to('cuda'), x.to('cuda').",
                "See whether the framework was installed with GPU support: torch.cuda.is_available().",
            ),
            view=ViewRef("cores", {}),
        )

    def _low(  # noqa: PLR0917 - one GPU and its numbers
        self, run: RunView, high: float, low: float, rank: int, device: str, values: NDArray[np.float64]
    ) -> Finding:
        mean = float(values.mean())
        advice: tuple[str, ...]
        if high < self.threshold_p95:
            text = f"{device} is under-used: at most {high:.0f}% in 95% of the time"
            advice = (
                "A larger batch gives each kernel more to do.",
                "Look on the timeline for what the GPU waits for.",
                "Call .item(), .cpu() and print more seldom: each waits until the GPU is done.",
            )
        else:
            text = f"{device} goes up and down: below {low:.0f}% in 5% of the time, up to {high:.0f}%"
            advice = (
                "Look on the timeline for what goes on while it is idle.",
                "Call .item(), .cpu() and print more seldom: each waits until the GPU is done.",
            )
        bad = high < _VERY_LOW or self.classic
        return self.finding(
            run.step,
            f"{text} (mean {mean:.0f}%); kept busy, it could do up to {100 / max(mean, 1.0):.2g} times as "
            f"much.",
            severity=Severity.WARNING if bad else Severity.NOTICE,
            evidence={
                "gpu_p95_percent": high,
                "gpu_p5_percent": low,
                "gpu_mean_percent": mean,
                "gain_percent": max(0.0, 100.0 - mean),
                "samples_count": len(values),
                "device": device,
            },
            advice=advice,
            view=ViewRef("cores", {}),
            rank=rank if len(run.ranks) > 1 else None,
        )
