from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tdbg_lab.actions import Action, ActionContext, Message, Pattern, RunCallable
from tdbg_lab.records import Finding, Severity
from tdbg_lab.rules import DeadRelu, ExplodingTensor
from tdbg_lab.rules.engine import Judged
from tdbg_lab.rules.episode import Change, Episodes, News
from tdbg_lab.rules.performer import Performer
from tests.threads import no_more_threads


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


def replace_rule(given: Change, rule: str) -> Change:
    return given._replace(finding=replace(given.finding, rule=rule))


def performed(action: Count, *events: tuple[float, Change]) -> list[str]:
    clock = Clock()
    performer = Performer(ActionContext(Path("run")), clock=clock)
    judged = Judged(DeadRelu(actions=action), Episodes())
    for at, event in events:
        clock.now = at
        performer.perform(judged, event)
        performer.wait()
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


def test_action_for_all_rules_waits_for_its_pattern() -> None:
    action = Count(once=False, cooldown_s=0, when=Pattern(all_of=("dead_relu", "exploding_tensor")))
    performer = Performer(ActionContext(Path("run")), actions=[action])
    dead, exploding = Judged(DeadRelu(), Episodes()), Judged(ExplodingTensor(), Episodes())
    performer.perform(dead, change("a"))
    performer.perform(dead, change("b"))
    performer.perform(exploding, replace_rule(change("c"), "exploding_tensor"))
    performer.wait()
    assert action.seen == ["c"]


def test_finding_that_becomes_bad_enough_meets_a_pattern() -> None:
    action = Count(when=Pattern(severity="warning"))
    worse = change("b", News.WORSE, Severity.WARNING)
    assert performed(action, (0, change("a", severity=Severity.NOTICE)), (1, worse)) == ["b"]


def test_muted_rule_tells_nobody_and_still_stops() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Shout(Message):
        seen: list[str] = field(default_factory=list)

        def perform(self, finding: Finding, context: ActionContext) -> None:
            self.seen.append(finding.message)

    shout, count = Shout(), Count()
    performer = Performer(ActionContext(Path("run")), actions=[shout, count])
    performer.muted = ("dead_relu",)
    performer.perform(Judged(DeadRelu(), Episodes()), change("a"))
    performer.wait()
    assert (shout.seen, count.seen) == ([], ["a"])


def test_action_that_hangs_is_given_up_and_told_and_holds_nobody_up() -> None:
    release = threading.Event()
    hangs = RunCallable(function=lambda *_: release.wait(60), timeout_s=0.05, once=False, cooldown_s=0)
    count = Count(once=False, cooldown_s=0)
    performer = Performer(ActionContext(Path("run")), actions=[hangs, count])
    judged = Judged(DeadRelu(), Episodes())
    try:
        performer.perform(judged, change("a"))
        performer.wait()
        (told,) = performer.collect()
        performer.perform(judged, change("b"))
        performer.wait()
    finally:
        release.set()
    assert (told.rule, told.severity) == ("actions", Severity.NOTICE)
    assert told.message == (
        "The action RunCallable for dead_relu failed: it took longer than 0.05 s and is not asked again"
    )
    assert judged.notes == ["RunCallable failed: it took longer than 0.05 s and is not asked again"]
    assert count.seen == ["a", "b"]
    assert performer.collect() == []


def test_failure_is_told_without_addresses() -> None:
    def fail(*_: object) -> None:
        raise ValueError("no answer from https://user:secret@example.org/hook?token=x today")

    performer = Performer(ActionContext(Path("run")), actions=[RunCallable(function=fail)])
    judged = Judged(DeadRelu(), Episodes())
    performer.perform(judged, change("a"))
    performer.wait()
    (told,) = performer.collect()
    assert told.message.endswith("no answer from (address) today")


def test_what_was_done_by_an_earlier_process_is_not_done_again() -> None:
    known = Finding("dead_relu", Severity.CRITICAL, 0, 0, "a", id="f1")
    judged = Judged(DeadRelu(), Episodes([known]))
    met, unmet = Count(when=Pattern(count=1)), Count(when=Pattern(count=2))
    performer = Performer(ActionContext(Path("run")), actions=[met, unmet])
    performer.forget_nothing([judged])
    performer.perform(judged, change("b"))
    performer.wait()
    assert (met.seen, unmet.seen) == ([], ["b"])


class Server:
    """Refuses so many calls, then takes them."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.calls = 0

    def __call__(self, *_: object) -> None:
        self.calls += 1
        if self.calls <= self.refusals:
            raise OSError("The server is down.")


def asked(performer: Performer, clock: Clock, at_s: float) -> list[str]:
    clock.now = at_s
    told = performer.collect()  # asks for what is due
    performer.wait()
    return [one.message for one in [*told, *performer.collect()]]


def test_once_that_failed_is_tried_again_and_told_in_one_finding() -> None:
    clock, server, judged = Clock(), Server(2), Judged(DeadRelu(), Episodes())
    performer = Performer(ActionContext(Path("run")), actions=[RunCallable(function=server)], clock=clock)
    performer.perform(judged, change("a"))
    performer.wait()
    (first,) = performer.collect()
    assert first.message == (
        "The action RunCallable for dead_relu failed and is tried again: The server is down."
    )
    assert asked(performer, clock, 59) == []
    performer.perform(judged, change("b"))  # once: another finding asks for nothing
    assert asked(performer, clock, 61) == [first.message]
    assert asked(performer, clock, 182) == [
        "The action RunCallable for dead_relu was performed at try 3; before, it failed: The server is down."
    ]
    assert judged.notes == ["RunCallable was performed at try 3; before, it failed: The server is down."]
    assert asked(performer, clock, 1e6) == []
    assert server.calls == 3


def test_once_that_fails_again_and_again_is_given_up() -> None:
    clock, server, judged = Clock(), Server(1000), Judged(DeadRelu(), Episodes())
    performer = Performer(ActionContext(Path("run")), actions=[RunCallable(function=server)], clock=clock)
    performer.perform(judged, change("a"))
    performer.wait()
    told = performer.collect()
    for hour in range(1, 20):
        clock.now = hour * 3600
        told += performer.collect()
        performer.wait()
    assert server.calls == 6
    assert len({one.id for one in told}) == 1
    assert told[-1].message == (
        "The action RunCallable for dead_relu failed 6 times and is not tried again: The server is down."
    )


def test_action_is_tried_again_where_no_thread_could_be_started() -> None:
    count, judged = Count(), Judged(DeadRelu(), Episodes())
    performer = Performer(ActionContext(Path("run")), actions=[count])
    with no_more_threads():
        performer.perform(judged, change("a"))
    told = [one.message for one in performer.finish()]
    assert count.seen == ["a"]
    assert (
        told[0] == "The action Count for dead_relu failed and is tried again: no more threads may be started"
    )


def test_once_that_failed_is_tried_once_more_when_the_run_ends() -> None:
    server, judged = Server(1), Judged(DeadRelu(), Episodes())
    performer = Performer(ActionContext(Path("run")), actions=[RunCallable(function=server)])
    performer.perform(judged, change("a"))
    told = [one.message for one in performer.finish()]
    assert server.calls == 2
    assert told[-1].endswith("was performed at try 2; before, it failed: The server is down.")
    server = Server(1000)
    performer = Performer(ActionContext(Path("run")), actions=[RunCallable(function=server)])
    performer.perform(judged, change("a"))
    told = [one.message for one in performer.finish()]
    assert server.calls == 2
    assert told[-1].endswith("failed 2 times and is not tried again: The server is down.")
