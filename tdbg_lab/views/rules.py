"""Rules and what they found, over the steps they checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.records import RuleState, RuleStatus, Severity
from tdbg_lab.views.common import STEP
from tdbg_lab.views.labels import count, full, safe, short
from tdbg_lab.views.palette import MUTED, SEVERITY, STATUS, faded
from tdbg_lab.views.registry import view
from tdbg_lab.views.rule_words import STATUS_WORDS, rule_progress, rule_title
from tdbg_lab.views.style import describe, empty, new_figure, step_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plotly import graph_objects as go

    from tdbg_lab.records import Finding
    from tdbg_lab.run import Run

__all__ = ["rules"]

_CALM = {
    RuleStatus.IN_PROGRESS: 1,
    RuleStatus.NO_ISSUE: 1,
    RuleStatus.STOPPED: 2,
    RuleStatus.NOT_APPLICABLE: 3,
}
"""Those that found something, or failed, come first."""
_MOST_ROWS = 14
"""More names than this cannot be read in a picture of usual height; the rule timeline shows all."""
_MOST_TWO_LINES = 8
"""The same of names with their states in a line below."""
_MOST_BARS = 500
_ORDER = (Severity.NOTICE, Severity.WARNING, Severity.CRITICAL)


@view(
    "rules",
    title="Rules",
    description="What each rule checked and found.",
    axis="step",
    params=(STEP,),
)
def rules(run: Run, *, step: int | None = None) -> go.Figure:
    """One line a rule: the steps it checked in grey, its findings on top, its status in words.

    The rules that found something come first; of many, the calm ones are only counted.
    """
    states, findings = list(run.rule_states()), list(run.findings())
    known = {state.rule for state in states}
    states += [
        RuleState(
            rule, RuleStatus.ISSUE_FOUND, step_checked=max(f.step_last for f in findings if f.rule == rule)
        )
        for rule in dict.fromkeys(f.rule for f in findings)
        if rule not in known
    ]
    if not states:
        return empty(
            "No rules have run on this run.",
            'Start them with attach(..., rules="default") or tdbg rules RUN.',
        )
    every = states
    states = sorted(every, key=lambda state: _CALM.get(state.status, 0))[:_MOST_ROWS]
    between = "<br>" if len(states) <= _MOST_TWO_LINES else " "
    rows = {state.rule: _row_name(state, between) for state in states}
    last = max([state.step_checked for state in every] + [finding.step_last for finding in findings] + [0])
    shown = [finding for finding in findings if finding.rule in rows]
    traces = [_checked(states, rows), *_found(shown, rows, last)]
    figure = new_figure(traces)
    figure.update_layout(
        barmode="overlay",
        xaxis=step_axis([0, last], range=[-0.5 - last * 0.01, last * 1.01 + 0.5]),
        yaxis={
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [rows[s.rule] for s in reversed(states)],
            "range": [-0.6, len(states) - 0.4],
            "showgrid": False,
        },
        margin={"t": 44},
        showlegend=True,
        legend={"traceorder": "normal"},
    )
    return describe(figure, _caption(every, findings, len(every) - len(states)), step=step)


def _row_name(state: RuleState, between: str) -> str:
    """Name and status of a rule in words, for the axis."""
    words = STATUS_WORDS[RuleStatus(state.status)]
    if state.findings > 1:
        words += f" ({state.findings:,})"
    name = short(rule_title(state.rule), 40)
    colour = STATUS[RuleStatus(state.status)]
    return f'<b>{name}</b>{between}<span style="color:{colour}">\N{BLACK CIRCLE}</span> {words}'


def _bar_width(rows: dict[str, str]) -> float:
    """Thickness of a bar in rows; few rules do not become blocks."""
    return min(0.5, 0.1 * len(rows) + 0.05)


def _checked(states: Sequence[RuleState], rows: dict[str, str]) -> dict[str, Any]:
    """Grey bars over the steps checked."""
    return {
        "type": "bar",
        "orientation": "h",
        "name": "checked",
        "width": _bar_width(rows),
        "y": [rows[state.rule] for state in states],
        "base": [0] * len(states),
        "x": [max(state.step_checked, 0) for state in states],
        "marker": {"color": faded(MUTED, 0.28), "line": {"width": 0}},
        "customdata": [[full(state.rule), rule_progress(state), safe(state.reason)] for state in states],
        "hovertemplate": "%{customdata[0]}: %{customdata[1]}<br>%{customdata[2]}<extra></extra>",
    }


def _found(findings: Sequence[Finding], rows: dict[str, str], last: int) -> list[dict[str, Any]]:
    """Bars over the steps of each finding, one trace for each severity that occurs."""
    least = max(last * 0.006, 0.3)  # one step must remain visible among thousands
    traces = []
    for severity in _ORDER:
        mine = [each for each in findings if each.severity == severity][-_MOST_BARS:]
        if not mine:
            continue
        widths = [max(each.step_last - each.step_first, least) for each in mine]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": severity.value,
                "width": _bar_width(rows),
                "y": [rows[each.rule] for each in mine],
                "base": [each.step_first for each in mine],
                "x": widths,
                "marker": {"color": SEVERITY[severity], "line": {"width": 0}},
                "text": [severity.value if width > last * 0.12 else "" for width in widths],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "insidetextfont": {"color": "#ffffff" if severity is Severity.CRITICAL else "#14161e"},
                "textangle": 0,
                "customdata": [
                    [
                        _lines(each.message),
                        full(each.tensor or each.module or "whole run"),
                        _steps(each),
                        _lines(each.advice[0] if each.advice else ""),
                    ]
                    for each in mine
                ],
                "hovertemplate": f"<b>{severity.value}</b>: %{{customdata[0]}}<br>%{{customdata[1]}}, "
                "%{customdata[2]}"
                "<br><i>%{customdata[3]}</i><extra></extra>",
            }
        )
    return traces


def _steps(finding: Finding) -> str:
    if finding.step_first == finding.step_last:
        return f"step {finding.step_first:,}"
    return f"steps {finding.step_first:,} to {finding.step_last:,}"


def _lines(text: str, width: int = 80) -> str:
    """A long sentence over several lines, safe and bounded."""
    words, lines, line = text[:1000].split(), [], ""
    for word in words:
        if line and len(line) + len(word) >= width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return "<br>".join(safe(each) for each in [*lines, line])


def _caption(states: Sequence[RuleState], findings: Sequence[Finding], hidden: int) -> str:
    found = [severity for severity in reversed(_ORDER) if any(f.severity == severity for f in findings)]
    rules_ = count(len(states), "rule") + (f" ({hidden} of them not drawn)" if hidden else "")
    if not found:
        return f"{rules_}, no findings."
    parts = [f"{sum(f.severity == severity for f in findings):,} {severity.value}" for severity in found]
    newest = max(findings, key=lambda finding: (finding.time_ns, finding.step_last))
    head = f"{rules_}, {count(len(findings), 'finding')} ({', '.join(parts)})"
    return f"{head}; newest: {newest.message}"
