"""What the list shows of a run beyond ``run.json``: few numbers, kept after the run is closed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import Kind, Mode, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.run import Run

__all__ = ["LOSS_POINTS", "Digest", "digest", "heard", "thin"]

LOSS_POINTS = 64
LOSS_AGE_S = 0.5
"""Age at which the loss curve is read again."""
RATE_STEPS = 32
"""Steps over which the speed of a running run is taken."""


@dataclass(frozen=True, slots=True)
class Digest:
    """A run at one version."""

    version: int
    status: RunStatus
    last_step: int
    """-1 when there is none."""
    last_write_ns: int | None
    steps_per_second: float | None
    loss: tuple[tuple[int, float], ...] | None
    """Step and value, at most `LOSS_POINTS` pairs."""
    loss_read_s: float
    """When the loss curve was read, by the clock that nobody sets."""
    findings: tuple[int, int, int]
    """Notices, warnings, criticals of rules that are not muted."""
    muted: int = 0
    """Findings of muted rules."""


def digest(run: Run, before: Digest | None = None, *, status: RunStatus | None = None) -> Digest:
    """Read the few numbers off a run that is open.

    Parameters
    ----------
    before
        An earlier digest. Its loss curve is taken over while it is younger than `LOSS_AGE_S`: the
        curve is the dear part.
    status
        What `run.status` answers, when the caller knows: it looks for the process.
    """
    status = run.status if status is None else status
    now_s = time.monotonic()
    fresh = before is not None and before.status is status and now_s - before.loss_read_s < LOSS_AGE_S
    findings = run.findings()
    severities = [str(finding.severity) for finding in heard(run, findings)]
    return Digest(
        version=run.version,
        status=status,
        last_step=run.last_step,
        last_write_ns=run.last_time_ns or None,
        steps_per_second=_speed(run, running=status is RunStatus.RUNNING),
        loss=before.loss if before is not None and fresh else _loss(run),
        loss_read_s=before.loss_read_s if before is not None and fresh else now_s,
        findings=(severities.count("notice"), severities.count("warning"), severities.count("critical")),
        muted=len(findings) - len(severities),
    )


def heard(run: Run, findings: Sequence[Finding]) -> list[Finding]:
    """Those of `findings` whose rules are not muted."""
    muted = run.info.muted
    return [finding for finding in findings if finding.rule not in muted]


def _speed(run: Run, *, running: bool) -> float | None:
    """Training steps per second: of late for a running run, else on average."""
    steps, time_ns = run.step_times()
    if running:
        steps, time_ns = steps[-RATE_STEPS:], time_ns[-RATE_STEPS:]
    if len(steps) < 2:
        return None
    seconds = (int(time_ns[-1]) - int(time_ns[0])) / 1e9
    return (int(steps[-1]) - int(steps[0])) / seconds if seconds > 0 else None


def _loss(run: Run) -> tuple[tuple[int, float], ...] | None:
    name = _loss_name(run)
    if name is None:
        return None
    series = run.scalars(name)
    steps, values = thin(np.asarray(series.steps), np.asarray(series.values, dtype=np.float64), LOSS_POINTS)
    pairs: Any = zip(steps.tolist(), values.tolist(), strict=True)
    return tuple(pairs) or None


def _loss_name(run: Run) -> str | None:
    """The first loss module's output, else the first logged scalar with "loss" in its name."""
    for mode in (Mode.TRAIN, None):
        names = run.tensor_names(kind=Kind.LOSS, mode=mode)
        if names:
            return names[0]
    names = run.tensor_names(kind=Kind.SCALAR)
    return next((name for name in names if "loss" in name.lower()), None)


def thin(
    steps: NDArray[np.int64], values: NDArray[np.float64], n_out: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """At most `n_out` points of a series: first and last kept, and non-finite ones before others."""
    count = len(steps)
    if count <= n_out:
        return steps, values
    edges = np.linspace(1, count - 1, n_out - 1).astype(np.int64)
    bad = np.flatnonzero(~np.isfinite(values))
    chosen = edges[:-1].copy()
    place = np.searchsorted(bad, chosen)
    if len(bad):
        candidate = bad[np.minimum(place, len(bad) - 1)]
        inside = (candidate >= chosen) & (candidate < edges[1:])
        chosen[inside] = candidate[inside]
    index = np.concatenate([[0], chosen, [count - 1]])
    return steps[index], values[index]
