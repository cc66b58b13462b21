from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tdbg_lab.actions import Action, ActionContext
from tdbg_lab.records import Finding, Severity
from tdbg_lab.rules import DeadRelu
from tdbg_lab.rules.engine import Judged
from tdbg_lab.rules.episode import Change, Episodes, News
from tdbg_lab.rules.performer import Performer


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, kw_only=True)
class Count(Action):
    seen: list[str] = field(default_factory=list)

    def perform(self, finding: Finding, context: ActionContext) -> None:
        self.seen.append(finding.message)


def change(message: str, news: News = News.NEW, severity: Severity = Severity.WARNING) -> Change:
    return Change(Finding("dead_relu", severity, 0, 0, message), news, severity)


def performed(action: Count, *events: tuple[float, Change]) -> list[str]:
    clock = Clock()
    performer = Performer(ActionContext(Path("run")), clock=clock)
    judged = Judged(DeadRelu(actions=action), Episodes())
    for at, event in events:
        clock.now = at
        performer.perform(judged, event)
    return action.seen


def test_once_is_once_a_run() -> None:
    assert performed(Count(), (0, change("a")), (1000, change("b"))) == ["a"]


def test_each_time_waits_for_the_cool_down() -> None:
    events = [(0, change("a")), (30, change("b")), (61, change("c")), (200, change("d"))]
    assert performed(Count(once=False), *events) == ["a", "c", "d"]


@pytest.mark.parametrize(
    ("event", "seen"),
    [
        (change("b", News.LONGER), ["a"]),
        (change("b", News.WORSE, Severity.WARNING), ["a"]),
        (change("b", News.WORSE, Severity.CRITICAL), ["a", "b"]),
    ],
)
def test_growth_is_no_occasion_but_becoming_critical_is(event: Change, seen: list[str]) -> None:
    assert performed(Count(once=False, cooldown_s=0), (0, change("a")), (1, event)) == seen
