"""Rules x steps: when which rule saw trouble, how bad it was, and what followed from what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import RuleState, RuleStatus, Severity
from tdbg_lab.views.common import STEP, points
from tdbg_lab.views.labels import count, full, short
from tdbg_lab.views.palette import MUTED, SEVERITY, SEVERITY_SYMBOLS, faded
from tdbg_lab.views.param import Param
from tdbg_lab.views.registry import view
from tdbg_lab.views.rule_words import rule_title
from tdbg_lab.views.style import describe, empty, new_figure, step_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from plotly import graph_objects as go

    from tdbg_lab.records import Finding
    from tdbg_lab.run import Run

__all__ = ["rule_timeline"]

_ORDER = (Severity.NOTICE, Severity.WARNING, Severity.CRITICAL)
_CLEAR, _CHECKED = 0, 1
"""Codes of cells; severities follow in their order."""
_MOST_MARKS = 500
_MOST_LINKS = 100


@dataclass(frozen=True, slots=True)
class _Grid:
    """Worst severity of each rule in each bin of steps."""

    edges: NDArray[np.int64]
    """First step of each bin, and one more: shape ``(S + 1,)``."""
    codes: NDArray[np.uint8]
    """Shape ``(R, S)``."""
    findings: NDArray[np.int32]
    """Findings open in each bin, shape ``(R, S)``."""

    @property
    def centres(self) -> NDArray[np.float64]:
        """Where the bins stand on the axis, shape ``(S,)``."""
        return np.asarray((self.edges[:-1] + self.edges[1:] - 1) / 2, dtype=np.float64)


@view(
    "rule_timeline",
    title="Rule timeline",
    description="When each rule saw trouble, how bad it was, and what followed from what.",
    axis="step",
    params=(
        Param(
            "show",
            "Rules",
            "choice",
            "applicable",
            choices=("found", "applicable", "all"),
            choice_labels=("With findings", "That apply", "All"),
            help="Rules that do not apply to the run are left out by default.",
        ),
        STEP,
        points(600, 4000),
    ),
)
def rule_timeline(
    run: Run, *, show: str = "applicable", step: int | None = None, n_out: int = 600
) -> go.Figure:
    """Heat map of rules (top: the first that found something) x steps.

    A mark tells where each finding began, a dotted line from which finding it follows.
    """
    findings = sorted(run.findings(), key=lambda each: (each.step_first, each.time_ns))
    every = _states(run.rule_states(), findings)
    if not every:
        return empty(
            "No rules have run on this run.",
            'Start them with attach(..., rules="default") or tdbg rules RUN.',
        )
    states = [each for each in every if _is_wanted(each, show)]
    if not states:
        return empty(
            "No rule is to be shown.", f"{count(len(every), 'rule')} ran: choose another set of rules."
        )
    last = max([state.step_checked for state in every] + [each.step_last for each in findings] + [0])
    rows = {state.rule: index for index, state in enumerate(states)}
    grid = _grid(states, findings, rows, last, n_out)
    names = [_row_name(state, muted=state.rule in run.info.muted) for state in states]
    traces = [_heat(grid, names), *_links(findings, rows, names), *_marks(findings, rows, names)]
    figure = new_figure(traces)
    figure.update_layout(
        xaxis=step_axis([0, last], range=[-0.5 - last * 0.01, last * 1.01 + 0.5], showgrid=False),
        yaxis={
            "type": "category",
            "categoryorder": "array",
            "categoryarray": names[::-1],
            "range": [-0.6, len(states) - 0.4],
            "showgrid": False,
            "tickfont": {"size": 10 if len(states) > 12 else 11},
        },
        margin={"t": 44},
        showlegend=True,
    )
    return describe(figure, _caption(findings, len(every), len(every) - len(states)), step=step)


def _states(told: Sequence[RuleState], findings: Sequence[Finding]) -> list[RuleState]:
    """One state a rule: those that found something first, in the order of their first finding."""
    found = {each.rule: index for index, each in reversed(list(enumerate(findings)))}
    known = {state.rule for state in told}
    lost = [
        RuleState(rule, RuleStatus.ISSUE_FOUND, step_checked=findings[index].step_last, findings=1)
        for rule, index in found.items()
        if rule not in known
    ]
    return sorted([*told, *lost], key=lambda state: found.get(state.rule, len(findings)))


def _is_wanted(state: RuleState, show: str) -> bool:
    if show == "found":
        return state.findings > 0
    return show == "all" or state.findings > 0 or state.status is not RuleStatus.NOT_APPLICABLE


def _grid(
    states: Sequence[RuleState], findings: Sequence[Finding], rows: dict[str, int], last: int, n_out: int
) -> _Grid:
    n_bins = min(last + 1, n_out)
    edges = np.linspace(0, last + 1, n_bins + 1).astype(np.int64)
    codes = np.full((len(rows), n_bins), _CLEAR, dtype=np.uint8)
    open_findings = np.zeros((len(rows), n_bins), dtype=np.int32)
    for row, state in enumerate(states):
        codes[row, : int(np.searchsorted(edges[:-1], state.step_checked, side="right"))] = _CHECKED
    for each in findings:
        if each.rule not in rows:
            continue
        begin = max(int(np.searchsorted(edges, each.step_first, side="right")) - 1, 0)
        end = max(int(np.searchsorted(edges, each.step_last, side="right")), begin + 1)
        cells = (rows[each.rule], slice(begin, end))
        codes[cells] = np.maximum(codes[cells], _code(each.severity))
        open_findings[cells] += 1
    return _Grid(edges, codes, open_findings)


def _code(severity: Severity) -> int:
    return _CHECKED + 1 + _ORDER.index(Severity(severity))


def _row_name(state: RuleState, *, muted: bool) -> str:
    name = short(rule_title(state.rule), 64)
    return f"{name} (muted)" if muted else name


def _heat(grid: _Grid, names: Sequence[str]) -> dict[str, Any]:
    colours = ["rgba(0,0,0,0)", faded(MUTED, 0.25), *(faded(SEVERITY[each], 0.72) for each in _ORDER)]
    scale = [(edge / 5, colour) for i, colour in enumerate(colours) for edge in (i, i + 1)]
    return {
        "type": "heatmap",
        "name": "rules",
        "x": grid.centres,
        "y": list(names),
        "z": grid.codes,
        "zmin": -0.5,
        "zmax": 4.5,
        "colorscale": scale,
        "showscale": False,
        "showlegend": False,
        "xgap": 0,
        "ygap": 3,
        "customdata": grid.findings,
        "hovertemplate": "%{y}, step %{x:,d}<br><b>%{customdata}</b> open findings<extra></extra>",
    }


def _marks(findings: Sequence[Finding], rows: dict[str, int], names: Sequence[str]) -> list[dict[str, Any]]:
    """Where findings begin: one trace for each severity that occurs, told by its shape too."""
    traces = []
    for severity in reversed(_ORDER):
        mine = [each for each in findings if each.severity == severity and each.rule in rows]
        if not mine:
            continue
        shown = mine[:_MOST_MARKS]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"{severity.value} ({len(mine):,})",
                "x": [each.step_first for each in shown],
                "y": [names[rows[each.rule]] for each in shown],
                "marker": {
                    "symbol": SEVERITY_SYMBOLS[severity],
                    "size": 10,
                    "color": SEVERITY[severity],
                    "line": {"width": 1, "color": "#ffffff"},
                },
                "customdata": [
                    [full(each.message), full(each.tensor or each.module or "whole run"), each.step_last]
                    for each in shown
                ],
                "hovertemplate": f"<b>{severity.value}</b>, steps %{{x:,d}} to %{{customdata[2]:,d}}"
                "<br>%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
            }
        )
    return traces


def _links(findings: Sequence[Finding], rows: dict[str, int], names: Sequence[str]) -> list[dict[str, Any]]:
    """Dotted lines from each finding to the one it follows from."""
    known = {each.id: each for each in findings if each.id and each.rule in rows}
    x: list[int | None] = []
    y: list[str | None] = []
    for each in findings:
        cause = known.get(each.cause) if each.cause else None
        if cause is None or each.rule not in rows:
            continue
        x += [cause.step_first, each.step_first, None]
        y += [names[rows[cause.rule]], names[rows[each.rule]], None]
    if not x:
        return []
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "follows from",
            "x": x[: 3 * _MOST_LINKS],
            "y": y[: 3 * _MOST_LINKS],
            "line": {"color": MUTED, "width": 1.5, "dash": "dot"},
            "hoverinfo": "skip",
        }
    ]


def _caption(findings: Sequence[Finding], rules: int, hidden: int) -> str:
    text = f"{count(rules, 'rule')}"
    if hidden:
        text += f" ({hidden:,} not shown)"
    if not findings:
        return f"{text}, no findings."
    worst = max(findings, key=lambda each: (_code(each.severity), -each.step_first))
    first = findings[0]
    text += f", {count(len(findings), 'finding')}"
    text += f"; first: {rule_title(first.rule)} at step {first.step_first:,}"
    return f"{text}; worst: {worst.message}"
