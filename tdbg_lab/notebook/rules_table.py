"""What the rules found, as a table: for a notebook, and as plain text."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import NotFoundError
from tdbg_lab.nearest import did_you_mean
from tdbg_lab.records import RuleStatus, Severity
from tdbg_lab.views.rule_words import STATUS_WORDS, rule_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.records import Finding, RuleState
    from tdbg_lab.run import Run

__all__ = ["RulesTable", "explain", "rules_table"]

_SEVERITY = {
    Severity.CRITICAL: ("\N{HEAVY MULTIPLICATION X}", "critical"),
    Severity.WARNING: ("\N{BLACK UP-POINTING TRIANGLE}", "warning"),
    Severity.NOTICE: ("\N{BLACK CIRCLE}", "notice"),
}
_ICON = {
    RuleStatus.IN_PROGRESS: "\N{HORIZONTAL ELLIPSIS}",
    RuleStatus.NO_ISSUE: "\N{CHECK MARK}",
    RuleStatus.ISSUE_FOUND: "\N{BLACK CIRCLE}",
    RuleStatus.ERROR: "!",
    RuleStatus.STOPPED: "\N{BLACK SQUARE}",
    RuleStatus.NOT_APPLICABLE: "\N{EN DASH}",
}
_COLOURS = {"critical": "--jp-error-color1, #c62828", "warning": "--jp-warn-color1, #b26a00"}
_HEAD = ("Status", "Rule", "First step", "Message", "What to do")
_MAX_FINDINGS = 200
_MAX_CHARS = 1000
_RANK = list(Severity)


@dataclass(frozen=True, slots=True)
class _Row:
    icon: str
    word: str
    rule: str
    step: str
    message: str
    advice: str

    @property
    def cells(self) -> tuple[str, ...]:
        return (f"{self.icon} {self.word}", self.rule, self.step, self.message, self.advice)


class RulesTable:
    """Rules and findings; a notebook shows it as a table, everything else as text."""

    def __init__(self, rows: Sequence[_Row], caption: str) -> None:
        self._rows = rows
        self._caption = caption

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col" style="text-align:left">{one}</th>' for one in _HEAD)
        body = "".join(f"<tr>{self._cells(row)}</tr>" for row in self._rows)
        caption = f'<caption style="text-align:left">{html.escape(self._caption)}</caption>'
        return (
            f'<table class="tdbg-rules">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        )

    def _cells(self, row: _Row) -> str:
        colour = f"color:var({_COLOURS[row.word]})" if row.word in _COLOURS else ""
        status = f'<span aria-hidden="true" style="{colour}">{row.icon}</span> {html.escape(row.word)}'
        texts = (html.escape(one) for one in row.cells[1:])
        style = 'style="text-align:left;vertical-align:top"'
        return "".join(f"<td {style}>{one}</td>" for one in (status, *texts))

    def __str__(self) -> str:
        lines = [self._caption]
        for row in self._rows:
            step = f" at step {row.step}" if row.step else ""
            lines.append(f"{row.icon} {row.word:<24} {row.rule}{step}")
            lines += [
                f"    {text}" for text in (row.message, row.advice and f"What to do: {row.advice}") if text
            ]
        return "\n".join(lines)

    __repr__ = __str__


def rules_table(run: Run, findings: Sequence[Finding] | None = None) -> RulesTable:
    """The rules of a run and what they found, the worst first.

    Parameters
    ----------
    findings
        What to show instead of what the run has: the rules were asked just now.
    """
    states = run.rule_states() if findings is None else []
    found = run.findings() if findings is None else findings
    muted = set(run.info.muted)
    worst = sorted(found, key=lambda one: (-_RANK.index(one.severity), bool(one.cause), one.step_first))
    rows = [_found(one, muted) for one in worst[:_MAX_FINDINGS]]
    told = {one.rule for one in found}
    rows += [_standing(state, muted) for state in states if state.rule not in told]
    counts = [f"{sum(one.severity == level for one in found)} {level}" for level in reversed(_RANK)]
    left = f"; {len(found) - _MAX_FINDINGS} more are not shown" if len(found) > _MAX_FINDINGS else ""
    where = f"step {run.last_step}" if run.last_step >= 0 else "no step"
    caption = f"Run {run.info.name}, {where}: {', '.join(counts)}{left}."
    return RulesTable(rows, _plain(caption))


def _found(finding: Finding, muted: set[str]) -> _Row:
    icon, word = _SEVERITY[finding.severity]
    word += " (muted)" if finding.rule in muted else ""
    message = finding.message + (" It follows from another finding." if finding.cause else "")
    advice = finding.advice[0] if finding.advice else ""
    return _Row(icon, word, _plain(finding.rule), str(finding.step_first), _plain(message), _plain(advice))


def _standing(state: RuleState, muted: set[str]) -> _Row:
    icon, word = _status(state)
    word += " (muted)" if state.rule in muted else ""
    return _Row(icon, word, _plain(state.rule), "", _plain(state.reason), "")


def _status(state: RuleState) -> tuple[str, str]:
    """Icon and words."""
    status = RuleStatus(state.status)
    return _ICON[status], STATUS_WORDS[status]


def explain(name: str, run: Run | None) -> str:
    """What a rule sees, its thresholds, and where it stands on a run.

    Raises
    ------
    NotFoundError
        There is no such rule.
    """
    from tdbg_lab.server.rule_catalogue import catalogue

    known: dict[str, Any] = {one["name"]: one for one in catalogue()}
    states = {state.rule: state for state in run.rule_states()} if run is not None else {}
    if name not in known and name not in states:
        names = sorted({*known, *states})
        raise NotFoundError(f"There is no rule '{name}'.{did_you_mean(name, names)}")
    state = states.get(name)
    lines = [name]
    if name in known:
        lines = [f"{known[name]['title']} ({name})", known[name]["explanation"], "", "Thresholds:"]
        lines += [_threshold(one, state) for one in known[name]["thresholds"]]
    elif state is not None and state.parameters:
        lines += ["", "Thresholds:", *(f"  {key} = {value}" for key, value in state.parameters.items())]
    if run is not None and state is not None:
        icon, word = _status(state)
        because = f" ({_plain(state.reason)})" if state.reason else ""
        lines += ["", f"Run {_plain(run.info.name)}: {icon} {word}{because}, {rule_progress(state)}."]
        lines += [text for one in run.findings() if one.rule == name for text in _told(one)]
    return "\n".join(lines)


def _threshold(one: Any, state: RuleState | None) -> str:
    value = state.parameters.get(one["name"], one["default"]) if state is not None else one["default"]
    changed = f", by default {one['default']}" if value != one["default"] else ""
    return f"  {one['name']} = {value}{changed}" + (f": {one['help']}" if one["help"] else "")


def _told(finding: Finding) -> list[str]:
    icon, word = _SEVERITY[finding.severity]
    steps = f"steps {finding.step_first} to {finding.step_last}"
    lines = [f"{icon} {word}, {steps}: {_plain(finding.message)}"]
    lines += [f"    {_plain(key)}: {_plain(str(value))}" for key, value in finding.evidence.items()]
    return lines + [f"    {number}. {_plain(text)}" for number, text in enumerate(finding.advice, start=1)]


def _plain(text: str) -> str:
    """One line without control characters: it comes from a run directory."""
    return "".join(one if one.isprintable() else " " for one in text)[:_MAX_CHARS]
