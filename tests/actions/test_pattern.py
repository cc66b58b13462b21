from __future__ import annotations

import pytest

from tdbg_lab.actions import Pattern
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Finding, Severity


def found(rule: str = "a", step: int = 0, severity: str = "warning", tensor: str = "") -> Finding:
    return Finding(rule, Severity(severity), step, step, "something", tensor=tensor)


@pytest.mark.parametrize(
    ("pattern", "findings", "met"),
    [
        (Pattern(), [found()], True),
        (Pattern(severity="critical"), [found()], False),
        (Pattern(severity="warning"), [found(severity="critical")], True),
        (Pattern(rule="^van"), [found("vanishing_gradient")], True),
        (Pattern(rule="^van"), [found("dead_relu")], False),
        (Pattern(tensor=r"encoder\."), [found(tensor="gradient/encoder.0.weight")], True),
        (Pattern(tensor=r"encoder\."), [found(tensor="decoder.0")], False),
        (Pattern(count=2), [found(step=1)], False),
        (Pattern(count=2), [found(step=1), found(step=500)], True),
        (Pattern(count=2, within_steps=100), [found(step=1), found(step=500)], False),
        (Pattern(count=2, within_steps=100), [found(step=400), found(step=500)], True),
        (Pattern(count=2, severity="critical"), [found(severity="critical"), found()], False),
        (Pattern(all_of=("a", "b")), [found("a")], False),
        (Pattern(all_of=("a", "b")), [found("a"), found("c")], False),
        (Pattern(all_of=("a", "b")), [found("a"), found("c"), found("b")], True),
        (Pattern(all_of=("a", "b"), within_steps=5), [found("a", 1), found("b", 9)], False),
    ],
)
def test_pattern_is_met_by_what_it_says(pattern: Pattern, findings: list[Finding], *, met: bool) -> None:
    assert pattern.met(findings) is met


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"severity": "bad"}, "severity of a Pattern is 'bad'; expected notice, warning, critical."),
        ({"rule": "("}, "rule of a Pattern is not a regular expression"),
        ({"count": 0}, "count of a Pattern is 0; expected a whole number, at least 1."),
        ({"within_steps": -1}, "within_steps of a Pattern is -1"),
        ({"all_of": 5}, "all_of of a Pattern is 5; expected names of rules"),
    ],
)
def test_pattern_that_makes_no_sense_is_told(given, sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        Pattern(**given)
    assert sentence in str(error.value)
