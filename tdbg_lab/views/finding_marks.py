"""Findings as marks on an axis of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.views.labels import safe, short
from tdbg_lab.views.palette import SEVERITY, SEVERITY_SYMBOLS
from tdbg_lab.views.rule_words import rule_title

if TYPE_CHECKING:
    from tdbg_lab.records import Finding, Severity
    from tdbg_lab.run import Run

__all__ = ["finding_marks"]

_ROW = "findings"
_MOST = 200
_MOST_CHARS = 160


def finding_marks(run: Run, zero_ns: int, bounds: tuple[float, float]) -> list[dict[str, Any]]:
    """A trace for each severity, in the row ``findings``: a finding stands where its first step was written.

    Parameters
    ----------
    zero_ns
        The instant that is 0 s.
    bounds
        First and last second in sight.
    """
    muted = set(run.info.muted)
    placed: dict[Severity, list[tuple[float, Finding]]] = {}
    steps, times = run.step_times()
    for one in run.findings():
        at = (_time_ns(one, steps, times) - zero_ns) / 1e9
        if one.rule not in muted and bounds[0] <= at <= bounds[1]:
            placed.setdefault(one.severity, []).append((at, one))
    return [_marks(severity, found[-_MOST:]) for severity, found in placed.items()]


def _time_ns(finding: Finding, steps: Any, times: Any) -> int:
    """When its first step was written; of one without a step, when it was found."""
    if finding.step_first < 0 or not len(steps):
        return finding.time_ns
    row = min(int(np.searchsorted(steps, finding.step_first)), len(steps) - 1)
    return int(times[row])


def _marks(severity: Severity, found: list[tuple[float, Finding]]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [at for at, _ in found],
        "y": [_ROW] * len(found),
        "yaxis": "y",
        "customdata": [one.step_first for _, one in found],
        "text": [f"{safe(rule_title(one.rule))}: {short(one.message, _MOST_CHARS)}" for _, one in found],
        "name": str(severity),
        "showlegend": False,
        "cliponaxis": False,
        "marker": {"symbol": SEVERITY_SYMBOLS[severity], "size": 10, "color": SEVERITY[severity]},
        "hovertemplate": f"<b>{severity}</b> at step %{{customdata:,d}}<br>%{{text}}<extra></extra>",
    }
