"""GPUs, or training itself, that wait for disks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import ViewRef
from tdbg_lab.rules.profile.activity_rule import SampledRule
from tdbg_lab.rules.profile.bottleneck import find_bottleneck
from tdbg_lab.rules.profile.machine import devices, machines
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.sample_log import SampleLog

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["IOBottleneck"]


@rule("io_bottleneck", title="I/O bottleneck")
@dataclass(frozen=True, kw_only=True)
class IOBottleneck(SampledRule):
    """Most of the time, cores have nothing to do but wait for disks, while a GPU, or each step, waits too.

    I/O wait is sampled as the mean of all cores; here it is counted in cores: 100 % is one core that waits
    all the time. Without a GPU, a step waits when at least `min_wait` of it goes by before the forward pass.

    With `classic`, the condition of SageMaker Debugger to the letter: more than `patience` moments, and in
    more than `threshold` percent of them a GPU below `gpu_threshold` and I/O wait above `io_threshold`.
    """

    threshold: float = 50.0
    """Share of the moments, percent."""
    gpu_threshold: float = 10.0
    """Load below which a GPU waits, percent."""
    io_threshold: float = 50.0
    """I/O wait, percent of one core."""
    min_wait: float = 0.2
    """Without a GPU: share of the step's time that is waited for data."""
    window: int = 240
    """Last moments that are looked at."""
    least: int = 60
    """Least number of moments."""

    explains: ClassVar[tuple[str, ...]] = (
        "input_bound",
        "low_gpu_utilization",
        "gpu_idle_gaps",
        "batch_size",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("threshold", "gpu_threshold", "io_threshold", at_least=0, at_most=100)
        self.require("min_wait", above=0, below=1)

    def not_applicable(self, run: RunView) -> str:
        """Where the system counts no I/O wait; the classic condition also wants a GPU."""
        if not devices(run, "iowait"):
            return "No I/O wait was sampled so far: only Linux counts it, with attach(..., profiler=True)."
        without = self.classic and not machines(run)
        return "No GPU was found on the machines of this run: NVML sees none." if without else ""

    def judge(self, run: RunView) -> Finding | None:
        """Look at the moments of each machine."""
        if not machines(run):
            return None if self.classic else self._without_gpu(run)
        samples = run.activity.samples if run.activity else SampleLog()
        found = find_bottleneck(
            run,
            "iowait",
            window=None if self.classic else self.window,
            least=self.patience + 1 if self.classic else self.least,
            waits=lambda gpu: gpu < self.gpu_threshold,
            busy=lambda io: io > self.io_threshold,
            threshold=self.threshold,
            scale=lambda rank: float(samples.cores(rank) or 1),
        )
        if found is None:
            return None
        what = f"a GPU is below {self.gpu_threshold:g}% while"
        evidence = {"gpu_median_percent": found.gpu_median, "gpu_low_percent": found.waiting}
        return self._found(run, what, found.share, found.share, found.other_median, evidence)

    def _without_gpu(self, run: RunView) -> Finding | None:
        times = run.phase_times().training()
        if run.activity is None or len(times) < 2:
            return None
        wait = float(np.median(times.of("data")) / max(float(np.median(times.besides("capture"))), 1e-12))
        samples = run.samples("iowait", "cpu", machines(run, "iowait")[0])
        begun = samples.time_ns >= (run.activity.spans.first_ns or 0)
        values = samples.values[begun][-self.window :] * (run.activity.samples.cores() or 1)
        if wait < self.min_wait or len(values) < self.least:
            return None
        share = 100.0 * float((values > self.io_threshold).mean())
        if share <= self.threshold:
            return None
        what = f"steps wait for data ({wait:.0%} of their time) while"
        evidence = {"wait_share_percent": 100 * wait}
        return self._found(
            run, what, share, 100 * wait, float(np.median(np.minimum(values, 100.0))), evidence
        )

    def _found(  # noqa: PLR0917 - what was found, in its order
        self, run: RunView, what: str, share: float, gain: float, median: float, more: dict[str, float]
    ) -> Finding:
        return self.finding(
            run.step,
            f"In {share:.0f}% of the time {what} more than {self.io_threshold:g}% of a core waits for "
            f"disks: faster reading would save up to {gain:.0f}%.",
            evidence={"share_percent": share, "gain_percent": gain, "io_wait_median_percent": median, **more},
            advice=(
                "Read ahead in other processes: more num_workers, a larger prefetch_factor.",
                "Keep the data in few large binary files, near the processor: a local disk, or memory.",
                "Read in the order of the file and shuffle in memory, instead of many small files.",
            ),
            view=ViewRef("timeline", {}),
        )
