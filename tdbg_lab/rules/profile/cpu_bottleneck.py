"""GPUs that wait while the processor is busy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.records import ViewRef
from tdbg_lab.rules.profile.activity_rule import GpuRule, SampledRule
from tdbg_lab.rules.profile.bottleneck import find_bottleneck
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.sample_log import BUSIEST

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["CPUBottleneck"]


@rule("cpu_bottleneck", title="CPU bottleneck")
@dataclass(frozen=True, kw_only=True)
class CPUBottleneck(SampledRule, GpuRule):
    """A GPU has next to nothing to do while a core of the processor is busy, most of the time.

    Ours looks at the last `window` moments since training has begun. With `classic`, the condition of
    SageMaker Debugger to the letter: more than `patience` moments so far, and more than `threshold` percent
    of them such ones. Of very long runs, the last 4,096 moments count.
    """

    threshold: float = 50.0
    """Share of the moments, percent."""
    gpu_threshold: float = 10.0
    """Load below which a GPU waits, percent."""
    cpu_threshold: float = 90.0
    """Load above which a core is busy, percent."""
    window: int = 240
    """Last moments that are looked at: 2 minutes at a sample each half a second."""
    least: int = 60
    """Least number of moments."""

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("threshold", "gpu_threshold", "cpu_threshold", at_least=0, at_most=100)

    def judge(self, run: RunView) -> Finding | None:
        """Look at the moments of each machine."""
        found = find_bottleneck(
            run,
            BUSIEST,
            window=None if self.classic else self.window,
            least=self.patience + 1 if self.classic else self.least,
            waits=lambda gpu: gpu < self.gpu_threshold,
            busy=lambda cpu: cpu > self.cpu_threshold,
            threshold=self.threshold,
        )
        if found is None:
            return None
        return self.finding(
            run.step,
            f"In {found.share:.0f}% of the time a GPU is below {self.gpu_threshold:g}% while a core of the "
            f"processor is "
            f"above {self.cpu_threshold:g}%: training waits for the CPU, up to {found.share:.0f}% of the "
            f"time could be saved.",
            evidence={
                "share_percent": found.share,
                "gpu_low_percent": found.waiting,
                "gpu_median_percent": found.gpu_median,
                "busiest_core_median_percent": found.other_median,
                "moments_count": found.moments,
                "gain_percent": found.share,
            },
            advice=(
                "Load data in other processes: more num_workers in the DataLoader, and prefetch_factor.",
                "Take work off the training thread: augment in workers, call .item() more seldom.",
                "Profile some steps: the flame graph of Python functions shows what the thread does.",
            ),
            view=ViewRef("cores", {}),
            rank=found.rank if len(run.ranks) > 1 else None,
        )
