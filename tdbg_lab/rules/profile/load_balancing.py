"""GPUs of one machine that have unequal work."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.profile.activity_rule import GpuRule, SampledRule
from tdbg_lab.rules.profile.machine import devices, gpu_load, machines
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.profile.machine import Load
    from tdbg_lab.rules.view import RunView

__all__ = ["LoadBalancing", "distance"]

_EDGES = np.arange(0.0, 100.0, 2.0)


@rule("load_balancing", title="Load balancing")
@dataclass(frozen=True, kw_only=True)
class LoadBalancing(SampledRule, GpuRule):
    """GPUs of one machine are used to a different degree.

    How two GPUs are loaded is compared by the Jensen-Shannon distance of their histograms (natural logarithm:
    from 0 to 0.83). Two that are always at 98 and at 100 % are as far apart as can be, so ours also wants
    their means to differ by `min_difference` points, and looks at GPUs that are used at all.

    With `classic`, the condition of SageMaker Debugger to the letter, from more than `patience` samples on.
    """

    threshold: float = 0.5
    """Distance of the histograms."""
    min_difference: float = 20.0
    """Difference of the mean loads, points of percent."""

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("threshold", at_least=0, at_most=1)
        self.require("min_difference", at_least=0, at_most=100)

    def not_applicable(self, run: RunView) -> str:
        """On machines with one GPU each."""
        if why := super().not_applicable(run):
            return why
        several = any(count > 1 for count in Counter(rank for rank, _ in devices(run, "gpu")).values())
        return "" if several else "No machine of this run has more than one GPU."

    def judge(self, run: RunView) -> Finding | None:
        """Compare the GPUs of each machine in pairs."""
        for rank in machines(run):
            load = gpu_load(run, rank)
            values = load.values if self.classic else load.values[-self.window :]
            enough = len(values) > self.patience if self.classic else len(values) >= self.least
            if enough and (found := self._machine(run, rank, load, values)) is not None:
                return found
        return None

    def _machine(self, run: RunView, rank: int, load: Load, values: NDArray[np.float64]) -> Finding | None:
        mean = values.mean(axis=0)
        used = [place for place in range(len(load.devices)) if self.classic or values[:, place].max() > 0]
        pairs = [(distance(values[:, a], values[:, b]), a, b) for a, b in combinations(used, 2)]
        far = [
            (away, a, b)
            for away, a, b in pairs
            if away > self.threshold and (self.classic or abs(mean[a] - mean[b]) > self.min_difference)
        ]
        if not far:
            return None
        away, a, b = max(far)
        less, more = sorted((a, b), key=lambda place: float(mean[place]))
        gain = float(mean[more] - mean[used].mean()) / max(float(mean[more]), 1.0)
        return self.finding(
            run.step,
            f"{load.devices[less]} has less to do than {load.devices[more]}: {mean[less]:.0f} against "
            f"{mean[more]:.0f}% in the "
            f"mean; with the work spread evenly, steps would take up to {gain:.0%} less time.",
            severity=Severity.WARNING,
            evidence={
                "distance": away,
                "low_mean_percent": float(mean[less]),
                "high_mean_percent": float(mean[more]),
                "gain_percent": 100 * gain,
                "low_device": load.devices[less],
                "high_device": load.devices[more],
            },
            advice=(
                "Use DistributedDataParallel, not DataParallel, which gathers all on the first GPU.",
                "Give each process as much data: a DistributedSampler, batches of equal length.",
                "In a pipeline, move layers from the busy stage to the idle one.",
            ),
            view=ViewRef("cores", {}),
            rank=rank if len(run.ranks) > 1 else None,
        )


def distance(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Jensen-Shannon distance of the histograms of two loads (percent), 2 points a bin, natural logarithm."""
    p, q = (
        np.bincount(np.searchsorted(_EDGES, np.clip(one, 0, 99.99), side="right") - 1, minlength=50)
        for one in (first, second)
    )
    p, q = p / max(p.sum(), 1), q / max(q.sum(), 1)
    middle = (p + q) / 2
    return float(np.sqrt(max((_divergence(p, middle) + _divergence(q, middle)) / 2, 0.0)))


def _divergence(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    seen = p > 0
    return float((p[seen] * np.log(p[seen] / q[seen])).sum())
