"""The load of the machines in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.profile.activity_rule import ActivityRule
from tdbg_lab.rules.profile.machine import align, devices
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["OverallSystemUsage"]

_METRICS = (
    ("cpu", "percent"),
    ("memory", "percent"),
    ("gpu", "percent"),
    ("gpu_memory", "percent"),
    ("iowait", "percent"),
    ("disk_read", "bytes_per_s"),
    ("disk_write", "bytes_per_s"),
    ("net_recv", "bytes_per_s"),
    ("net_sent", "bytes_per_s"),
)
_PERCENTILES = (("max", 100), ("p99", 99), ("p95", 95), ("p50", 50), ("min", 0))


@rule("overall_system_usage", title="Overall system usage")
@dataclass(frozen=True, kw_only=True)
class OverallSystemUsage(ActivityRule):
    """A summary, not a fault: max, p99, p95, p50 and min of each load, as the numbers of one notice.

    Not among the default rules. With `classic` it finds nothing, as in SageMaker Debugger, where it only
    writes its numbers into the report; ours has them too (`tdbg report`).
    """

    least: int = 60
    """Least number of samples."""
    classic: bool = False

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("least", at_least=1)

    def not_applicable(self, run: RunView) -> str:
        """Without samples."""
        if devices(run, "cpu"):
            return ""
        return (
            "The load of the machine was not sampled so far; attach(..., profiler=True), the default, does."
        )

    def judge(self, run: RunView) -> Finding | None:
        """Put the percentiles together, of the first machine, devices averaged."""
        evidence: dict[str, float | int | str] = {}
        told = []
        for metric, unit in _METRICS:
            places = devices(run, metric)
            _, values = align(
                run.samples(metric, device, rank) for rank, device in places if rank == places[0][0]
            )
            if len(values) < self.least:
                continue
            levels = np.percentile(values.mean(axis=1), [share for _, share in _PERCENTILES])
            evidence |= {
                f"{metric}_{name}_{unit}": float(level)
                for (name, _), level in zip(_PERCENTILES, levels, strict=True)
            }
            if unit == "percent":
                told.append(f"{metric.replace('_', ' ')} {levels[3]:.0f}%")
        if not evidence or self.classic:
            return None
        return self.finding(
            run.step,
            f"Load of the machine, in the median: {', '.join(told)}.",
            severity=Severity.NOTICE,
            evidence=evidence,
            advice=("See the view of the cores, and the report, for all of it.",),
            view=ViewRef("cores", {}),
        )
