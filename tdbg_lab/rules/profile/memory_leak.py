"""Memory that grows and grows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.profile.activity_rule import ActivityRule
from tdbg_lab.rules.profile.machine import devices
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.sample_log import Samples
    from tdbg_lab.rules.view import RunView

__all__ = ["MemoryLeak"]

_NS = 1e9
_PARTS = 16


class _Trend(NamedTuple):
    """How a memory grows."""

    what: str
    rank: int
    from_bytes: float
    to_bytes: float
    bytes_per_s: float
    total_bytes: float | None

    @property
    def left_s(self) -> float:
        """Time until it is full, s; infinite when its size is not known."""
        return (
            np.inf
            if self.total_bytes is None
            else max(self.total_bytes - self.to_bytes, 0.0) / self.bytes_per_s
        )


@rule("memory_leak", title="Memory leak")
@dataclass(frozen=True, kw_only=True)
class MemoryLeak(ActivityRule):
    """Memory of the training process, or of a GPU, grows steadily while the steps go on.

    Only its lowest level counts, part by part of the time since training has warmed up: what is taken and
    given back is no leak. It must rise in nearly every part, and go on rising at the end: caches that fill up
    level off.
    """

    warm_up_s: float = 60.0
    """Time from the first step on that does not count, s."""
    min_time_s: float = 300.0
    """Least time that is looked at, s."""
    min_growth: float = 0.1
    """Least growth, as a share of the memory in use."""
    min_growth_mib: float = 64.0
    """Least growth, MiB."""
    soon_h: float = 24.0
    """Growth that fills the memory later than that is worth a notice only, h."""

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("warm_up_s", "min_growth", "min_growth_mib", at_least=0)
        self.require("min_time_s", "soon_h", above=0)

    def not_applicable(self, run: RunView) -> str:
        """Without a sampled memory."""
        if devices(run, "process_memory_bytes") or devices(run, "gpu_memory_bytes"):
            return ""
        return "No memory was sampled so far; attach(..., profiler=True), the default, does."

    def judge(self, run: RunView) -> Finding | None:
        """Look at the memory of every process and GPU; the one that is full first."""
        series = [
            ("process_memory_bytes", rank, device) for rank, device in devices(run, "process_memory_bytes")
        ]
        series += [("gpu_memory_bytes", rank, device) for rank, device in devices(run, "gpu_memory_bytes")]
        found = [trend for one in series if (trend := self._trend(run, *one)) is not None]
        return self._found(run, min(found, key=lambda one: one.left_s)) if found else None

    def _trend(self, run: RunView, metric: str, rank: int, device: str) -> _Trend | None:
        activity = run.activity
        if activity is None or activity.spans.first_ns is None:
            return None
        samples = activity.samples.whole(metric, device, rank)
        kept = samples.time_ns >= activity.spans.first_ns + int(self.warm_up_s * _NS)
        time_s, values = samples.time_ns[kept] / _NS, samples.values[kept]
        if len(values) < 2 * _PARTS or time_s[-1] - time_s[0] < self.min_time_s:
            return None
        lows = np.array([part.min() for part in np.array_split(values, _PARTS)])
        if not _keeps_rising(lows):
            return None
        growth = float(lows[-1] - lows[0])
        if growth < max(self.min_growth * float(lows[0]), self.min_growth_mib * 2**20):
            return None
        rate = growth / float(time_s[-1] - time_s[0]) * _PARTS / (_PARTS - 1)
        host = metric == "process_memory_bytes"
        whole = ("memory", "memory") if host else ("gpu_memory", device)
        size = _size(run.samples(*whole, rank), run.samples(f"{whole[0]}_bytes", whole[1], rank))
        return _Trend(
            "the training process" if host else device, rank, float(lows[0]), float(values[-1]), rate, size
        )

    def _found(self, run: RunView, trend: _Trend) -> Finding:
        left_h = trend.left_s / 3600
        steps = run.phase_times().besides()
        step_s = float(np.median(steps)) if len(steps) else 0.0
        evidence: dict[str, float | int | str] = {
            "from_mib": trend.from_bytes / 2**20,
            "to_mib": trend.to_bytes / 2**20,
            "growth_mib_per_h": trend.bytes_per_s * 3600 / 2**20,
            "growth_mib_per_step": trend.bytes_per_s * step_s / 2**20,
        }
        full = ""
        if np.isfinite(left_h):
            evidence["full_in_h"] = left_h
            full = f"; at that rate it is full in {_time(trend.left_s)}"
            if step_s > 0:
                evidence["full_at_step"] = run.step + int(trend.left_s / step_s)
                full += f", at about step {run.step + int(trend.left_s / step_s):,}"
        return self.finding(
            run.step,
            f"Memory of {trend.what} grows steadily, from {_bytes(trend.from_bytes)} to "
            f"{_bytes(trend.to_bytes)}, "
            f"{_bytes(trend.bytes_per_s * 3600)} an hour{full}.",
            severity=Severity.WARNING if left_h <= self.soon_h else Severity.NOTICE,
            evidence=evidence,
            advice=_advice(gpu=trend.what.startswith("gpu")),
            view=ViewRef("timeline", {}),
            rank=trend.rank if len(run.ranks) > 1 else None,
        )


def _keeps_rising(lows: NDArray[np.float64]) -> bool:
    """Whether the lowest level rises in nearly every part, and at the end about as fast as before."""
    steps = np.diff(lows)
    last = steps[-(len(steps) // 4) :]
    few_falls = (steps > 0).sum() >= len(steps) - 2 and steps.min() > -steps.mean()
    return bool(few_falls and last.mean() >= 0.4 * steps.mean() > 0)


def _size(percent: Samples, used: Samples) -> float | None:
    """Size of a memory, from what is in use of it as a share and in bytes."""
    if not len(percent.values) or not len(used.values) or percent.values[-1] <= 0:
        return None
    return float(100.0 * used.values[-1] / percent.values[-1])


def _advice(*, gpu: bool) -> tuple[str, ...]:
    told = (
        "Keep numbers, not tensors: total += loss.item(); a tensor holds its whole graph.",
        "Look for what grows with the steps: lists of outputs, histories, hooks added again.",
    )
    if gpu:
        return (
            *told,
            "torch.cuda.memory_summary() shows who holds what; varying shapes fragment it.",
        )
    return (
        *told,
        "Loader workers copy the lists of Python objects they read: keep the data set in arrays.",
        "Profile some steps with memory=True, or use tracemalloc, to see who takes it.",
    )


def _bytes(value: float) -> str:
    return f"{value / 2**30:.3g} GiB" if value >= 2**30 else f"{value / 2**20:.3g} MiB"


def _time(seconds: float) -> str:
    if seconds < 5400:
        return f"{seconds / 60:.2g} min"
    return f"{seconds / 3600:.2g} h" if seconds < 172800 else f"{seconds / 86400:.2g} days"
