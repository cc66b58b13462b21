"""Times at which the GPU has nothing to do, and what training does then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import Severity, ViewRef
from tdbg_lab.rules.profile.activity_rule import GpuRule
from tdbg_lab.rules.profile.machine import devices
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.sample_log import Samples
    from tdbg_lab.rules.span_log import Spans
    from tdbg_lab.rules.view import RunView

__all__ = ["GpuIdleGaps"]

_ADVICE = {
    "data": (
        "Load ahead in other processes (num_workers), and copy with pin_memory and non_blocking.",
        "If the loop does something else between steps, name it: with handle.phase('checkpoint').",
    ),
    "eval": ("Evaluate more seldom, on less, or with larger batches and a loader with workers of its own.",),
    "capture": ("Record more seldom (save_every=), or fewer collections.",),
    "optimizer": ("Use a fused optimizer: torch.optim.AdamW(..., fused=True).",),
}
_COMPUTING = (
    "Many small kernels keep the processor busy: torch.compile, CUDA graphs, or a larger batch.",
    "Call .item(), .cpu() and print more seldom: each waits until the GPU is done.",
)


@rule("gpu_idle_gaps", title="Idle GPU")
@dataclass(frozen=True, kw_only=True)
class GpuIdleGaps(GpuRule):
    """A GPU that is used is idle for a good part of the time; what training does then tells the cause.

    A sample covers the time since the one before it. The phase that fills most of the idle time, counted by
    time, is named as the cause.
    """

    max_idle: float = 0.2
    """Share of the moments at which the GPU is idle."""
    idle_below: float = 5.0
    """Load of an idle GPU, percent."""
    window: int = 240
    """Last moments that are looked at."""
    least: int = 60
    """Least number of moments."""

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("max_idle", above=0, below=1)
        self.require("idle_below", above=0, at_most=100)
        self.require("window", "least", at_least=2)

    def judge(self, run: RunView) -> Finding | None:
        """Look at each GPU during training; the idlest one that is used."""
        found = [one for place in devices(run, "gpu") if (one := self._gpu(run, *place)) is not None]
        return max(found, key=lambda one: float(one.evidence["idle_percent"]), default=None)

    def _gpu(self, run: RunView, rank: int, device: str) -> Finding | None:
        spans = run.spans(rank if rank in run.ranks else None)
        if not len(spans.start_ns):
            return None
        load = run.samples("gpu", device, rank)
        inside = (load.time_ns > spans.start_ns[0]) & (load.time_ns <= spans.end_ns.max())
        times, values = load.time_ns[inside][-self.window :], load.values[inside][-self.window :]
        idle = values < self.idle_below
        if len(values) < self.least or idle.mean() <= self.max_idle or not values.max() > 0:
            return None
        filled_s = _filled(spans, *_gaps(times, idle))
        whole = float(filled_s.sum())
        at = int(filled_s.argmax())
        phase, share = (spans.names[at], float(filled_s[at]) / whole) if whole > 0 else ("", 0.0)
        longest_s = _longest(load, times, idle)
        where = f", for {share:.0%} of it in {_words(phase)}" if phase else ""
        return self.finding(
            run.step,
            f"{device} is idle {idle.mean():.0%} of the time (up to {longest_s:.2g} s at once){where}: that "
            f"much time "
            "could be saved.",
            severity=Severity.WARNING if idle.mean() > 2 * self.max_idle else Severity.NOTICE,
            evidence={
                "idle_percent": 100 * float(idle.mean()),
                "gain_percent": 100 * float(idle.mean()),
                "longest_gap_s": longest_s,
                "phase": phase,
                "phase_share_percent": 100 * share,
                "device": device,
            },
            advice=_ADVICE.get(phase, _COMPUTING),
            view=ViewRef("timeline", {}),
            rank=rank if len(run.ranks) > 1 else None,
        )


def _gaps(times: NDArray[np.int64], idle: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Begin and end of the time that each idle sample covers, ns."""
    rows = np.flatnonzero(idle)
    rows = rows[rows > 0]
    return times[rows - 1], times[rows]


def _filled(spans: Spans, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """Time of each phase within the gaps, s; a phase that another one lies in keeps only its own part."""
    answer = np.zeros(len(spans.names))
    inner = _innermost(spans)
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        first = int(np.searchsorted(inner.start_ns, begin, side="right")) - 1
        last = int(np.searchsorted(inner.start_ns, end, side="left"))
        rows = slice(max(first, 0), last)
        shared = np.minimum(inner.end_ns[rows], end) - np.maximum(inner.start_ns[rows], begin)
        np.add.at(answer, inner.phase[rows], np.maximum(shared, 0) / 1e9)
    return answer


def _innermost(spans: Spans) -> Spans:
    """Time cut into pieces without overlap: at each moment the phase that began last and goes on."""
    if np.all(spans.start_ns[1:] >= spans.end_ns[:-1]):
        return spans
    pieces: list[tuple[int, int, int, int]] = []
    open_: list[tuple[int, int, int]] = []
    at = 0
    rows = zip(
        *(one.tolist() for one in (spans.start_ns, spans.end_ns, spans.step, spans.phase)), strict=True
    )
    for start, end, step, phase in [*rows, (2**62, 2**62, -1, -1)]:
        while open_ and open_[-1][0] <= start:
            until, own_step, own = open_.pop()
            if until > at:
                pieces.append((at, until, own_step, own))
                at = until
        if open_ and start > at:
            pieces.append((at, start, open_[-1][1], open_[-1][2]))
        at = max(at, start)
        open_.append((end, step, phase))
    table = np.array(pieces, np.int64).reshape(-1, 4)
    return type(spans)(table[:, 0], table[:, 1], table[:, 2], table[:, 3], spans.names)


def _longest(load: Samples, times: NDArray[np.int64], idle: NDArray[np.bool_]) -> float:
    """The longest time of idle samples in a row, s."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], idle, [False]]).astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]
    every_ns = float(np.median(np.diff(load.time_ns))) if len(load.time_ns) > 1 else 0.0
    lengths = [times[end - 1] - times[begin] + every_ns for begin, end in zip(begins, ends, strict=True)]
    return float(max(lengths, default=0.0)) / 1e9


def _words(phase: str) -> str:
    return "waiting for data" if phase == "data" else phase
