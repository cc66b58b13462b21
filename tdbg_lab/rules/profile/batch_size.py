"""Machines with room for a larger batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.profile.activity_rule import GpuRule, SampledRule
from tdbg_lab.rules.profile.machine import devices
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["BatchSize"]

_ROOM = 85.0
"""Share of the memory that a larger batch may take, percent."""


@rule("batch_size", title="Batch size")
@dataclass(frozen=True, kw_only=True)
class BatchSize(SampledRule, GpuRule):
    """Processor, GPU and GPU memory have room at the same time: a larger batch would use them.

    Frameworks that take all GPU memory at once (TensorFlow, JAX, by default) show nothing of this. Ours is a
    notice and begins at `least` samples; with `classic`, the condition of SageMaker Debugger to the letter,
    from more than `window` and more than `patience` samples on.
    """

    cpu_threshold_p95: float = 70.0
    """Load of all cores together, 95th percentile, percent."""
    gpu_threshold_p95: float = 70.0
    """Load of a GPU, 95th percentile, percent."""
    gpu_memory_threshold_p95: float = 70.0
    """Memory of the GPU in use, 95th percentile, percent."""
    least: int = 240
    """Least number of samples."""

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require(
            "cpu_threshold_p95", "gpu_threshold_p95", "gpu_memory_threshold_p95", at_least=0, at_most=100
        )

    def judge(self, run: RunView) -> Finding | None:
        """Look at each GPU with its machine."""
        for rank, device in devices(run, "gpu"):
            high = [
                self._p95(run, *place, rank)
                for place in (("cpu", "cpu"), ("gpu", device), ("gpu_memory", device))
            ]
            limits = (self.cpu_threshold_p95, self.gpu_threshold_p95, self.gpu_memory_threshold_p95)
            known = [one for one in high if one is not None]
            if len(known) < len(limits) or not all(
                one < limit for one, limit in zip(known, limits, strict=True)
            ):
                continue
            if self.classic or known[1] > 0:  # a GPU without any work is no matter of the batch
                return self._found(run, rank, device, *known)
        return None

    def _p95(self, run: RunView, metric: str, device: str, rank: int) -> float | None:
        values = self.last(run, metric, device, rank)
        if values is None or (self.classic and len(run.samples(metric, device, rank).values) <= self.window):
            return None
        return float(np.percentile(values, 95))

    def _found(  # noqa: PLR0917 - one GPU and its numbers
        self, run: RunView, rank: int, device: str, cpu: float, gpu: float, memory: float
    ) -> Finding:
        factor = max(1.0, min(_ROOM / max(memory, 1.0), _ROOM / max(gpu, 1.0)))
        now = run.loaders[0].batch_size if run.loaders else None
        size = (
            f"batches of about {now * factor:.0f} instead of {now}"
            if now
            else f"batches {factor:.2g} times as large"
        )
        return self.finding(
            run.step,
            f"In 95% of the time {device} is below {gpu:.0f}%, its memory below {memory:.0f}% and the "
            f"processor below "
            f"{cpu:.0f}%: {size} would use up to {factor:.2g} times as much of the GPU.",
            severity=Severity.WARNING if self.classic else Severity.NOTICE,
            evidence={
                "cpu_p95_percent": cpu,
                "gpu_p95_percent": gpu,
                "gpu_memory_p95_percent": memory,
                "batch_factor": factor,
                "device": device,
            },
            advice=(
                f"Make the batch larger, up to {factor:.2g} times, and the learning rate with it.",
                "Or run on a smaller machine, or several runs on this one.",
            ),
            view=ViewRef("cores", {}),
            rank=rank if len(run.ranks) > 1 else None,
        )
