"""Tables of the report: rules, durations of steps, and what kinds of work the time went to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.analysis.phases import step_times, training_spans, with_own_time
from tdbg_lab.errors import NotFoundError
from tdbg_lab.rules import find_rule
from tdbg_lab.views.html_page import Table
from tdbg_lab.views.labels import count, number, percent
from tdbg_lab.views.rule_words import rule_title

if TYPE_CHECKING:
    from pandas import DataFrame

    from tdbg_lab.records import Finding, RuleState
    from tdbg_lab.run import Run

__all__ = ["kinds_of_work", "rule_headline", "rule_table", "slow_step_table", "step_table"]

_OTHER_WARNING, _WAY_WARNING = 0.25, 0.7
"""Shares from which SageMaker Debugger's report warns."""
_WAYS = ("Forward, of both passes", "Backward, of both passes")
_MOST_RULES = 120
_MOST_RANKS = 64
_OWN_WORK = ("data", "forward", "backward", "optimizer", "boosting", "step")


def rule_headline(run: Run) -> str:
    """Which rule found most."""
    states = sorted(run.rule_states(), key=lambda one: -one.findings)
    if not states:
        return ""
    if not states[0].findings:
        return f"{count(len(states), 'rule')} found nothing."
    return f"{rule_title(states[0].rule)} found most: {count(states[0].findings, 'finding')}."


def rule_table(run: Run) -> Table:
    """Each rule: what it is, what it advises, how often it found something, how far it is."""
    advice: dict[str, Finding] = {one.rule: one for one in reversed(run.findings())}
    states = sorted(run.rule_states(), key=lambda one: (-one.findings, one.rule))
    rows = [
        (
            rule_title(one.rule),
            _about(one.rule),
            " ".join(advice[one.rule].advice[:2]) if one.rule in advice else "",
            f"{one.findings:,}",
            _checked(one),
            ", ".join(f"{key} {value}" for key, value in one.parameters.items()),
        )
        for one in states[:_MOST_RULES]
    ]
    return Table(rows, ("Rule", "What it looks for", "Advice", "Findings", "Checked", "Thresholds"))


def step_table(run: Run) -> Table:
    """How long steps took on each rank, ms."""
    times = step_times(training_spans(run.spans()))
    rows = []
    for rank in np.unique(times.rank)[:_MOST_RANKS].tolist():
        ms = times.duration_s[times.rank == rank] * 1e3
        shown = (float(ms.mean()), *np.percentile(ms, (100, 99, 95, 50, 0)).tolist())
        rows.append((f"rank {rank}", f"{len(ms):,}", *(number(each, 4) for each in shown)))
    return Table(rows, ("Step (ms)", "steps", "mean", "max", "p99", "p95", "p50", "min"))


def slow_step_table(run: Run) -> Table:
    """What the outliers among the steps are made of, beside the others, phase by phase; empty without any."""
    spans = training_spans(run.spans())
    times = step_times(spans)
    slow = times.outliers(3)
    if not slow.any():
        return Table(())
    frame = with_own_time(spans)
    outliers = set(zip(times.rank[slow].tolist(), times.step[slow].tolist(), strict=True))
    is_slow = np.array(
        [key in outliers for key in zip(frame["rank"].tolist(), frame["step"].tolist(), strict=True)]
    )
    steps = max(frame.groupby(["rank", "step"]).ngroups - len(outliers), 1), len(outliers)
    usual, odd = (
        frame.loc[rows].groupby("phase")["time"].sum() / of / 1e6
        for rows, of in ((~is_slow, steps[0]), (is_slow, steps[1]))
    )
    names = odd.sort_values(ascending=False).index.tolist()
    whole = float(odd.sum()) or 1.0
    rows = [
        (
            str(name),
            number(float(usual.get(name, 0.0)), 3),
            number(float(odd[name]), 3),
            percent(odd[name] / whole),
        )
        for name in names
    ]
    head = ("Phase", "usual step (ms)", f"{count(steps[1], 'slow step')} (ms)", "share of the slow steps")
    return Table(rows, head)


def kinds_of_work(run: Run) -> tuple[Table, list[str]]:
    """Shares of training, evaluation and the rest, and of forward and backward; what is odd about them."""
    shares = _kinds(run)
    if not shares:
        return Table(()), []
    return Table([(name, percent(share)) for name, share in shares.items()], ("Work", "Share")), _odd(shares)


def _odd(shares: dict[str, float]) -> list[str]:
    """One sentence each."""
    words = []
    if shares.get("Other", 0.0) > _OTHER_WARNING:
        words.append(
            f"{percent(shares['Other'])} of the time is neither training nor evaluation: saving, logging, "
            "callbacks, or phases of your own."
        )
    ways = [one for one in _WAYS if shares.get(one, 0.0) > _WAY_WARNING]
    return words + [
        f"{one.split(',')[0]} takes {percent(shares[one])} of the time of both passes." for one in ways
    ]


def _kinds(run: Run) -> dict[str, float]:
    spans = training_spans(run.spans())
    if not len(spans):
        return {}
    time = _by_phase(with_own_time(spans))
    whole = sum(time.values()) or 1.0
    training = sum(time.get(phase, 0.0) for phase in _OWN_WORK)
    evaluation = time.get("eval", 0.0)
    shares = {
        "Training": training / whole,
        "Evaluation": evaluation / whole,
        "Other": (whole - training - evaluation) / whole,
    }
    passes = time.get("forward", 0.0) + time.get("backward", 0.0)
    if passes:
        shares |= {way: time.get(way.split(",")[0].lower(), 0.0) / passes for way in _WAYS}
    return shares


def _by_phase(frame: DataFrame) -> dict[str, float]:
    return {str(name): float(time) for name, time in frame.groupby("phase")["time"].sum().items()}


def _about(name: str) -> str:
    """The first paragraph of the rule's own words."""
    try:
        text = find_rule(name).__doc__ or ""
    except NotFoundError:
        return ""
    return " ".join(text.strip().split("\n\n", 1)[0].split())


def _checked(state: RuleState) -> str:
    if state.reason and state.step_checked < 0:
        return state.reason
    return f"to step {state.step_checked:,}" if state.step_checked >= 0 else str(state.status)
