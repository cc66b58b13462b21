"""Rules that misbehave are told clearly; the others go on."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, make_dataclass
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Finding, Kind, RuleStatus
from tdbg_lab.rules import DeadRelu, Needs, Rule, check_run, resolve_rules, rule
from tdbg_lab.rules.manual import thresholds_of
from tdbg_lab.rules.runner import Runner
from tdbg_lab.store import read_findings, read_rule_states
from tests.threads import no_more_threads

from .made import Made

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Good(Rule):
    def check(self, step: int, run: Any) -> Finding | None:
        return self.finding(step, "seen", evidence={"loss": run.value("loss/x")}) if step == 3 else None


@dataclass(frozen=True, kw_only=True)
class Raises(Rule):
    error: BaseException

    def check(self, step: int, run: Any) -> Finding | None:
        if step == 1:
            raise self.error
        return None


@dataclass(frozen=True, kw_only=True)
class Loops(Rule):
    time_limit_s = 0.3

    def check(self, step: int, run: Any) -> Finding | None:
        while step == 1:
            pass
        return None


@dataclass(frozen=True, kw_only=True)
class Blocks(Rule):
    """Hangs in a call that nothing can interrupt; gives an answer when it comes back."""

    time_limit_s = 0.3
    forever: Any = None

    def check(self, step: int, run: Any) -> Finding | None:
        if step == 1:
            self.forever.wait()
        return self.finding(step, "too late") if step == 1 else None


@dataclass(frozen=True, kw_only=True)
class Answers(Rule):
    def check(self, step: int, run: Any) -> Any:
        return True


@dataclass(frozen=True, kw_only=True)
class Wants(Rule):
    def needs(self) -> Needs:
        raise LookupError("what?")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    made = Made(tmp_path / "run")
    for step in range(5):
        made.step(step, {"loss/x": np.nan if step == 3 else 1.0})
    made.end()
    return made


def state_of(made: Made, bad: Rule) -> Any:
    """Its state, after checking that the rule behind it found what it had to."""
    runner = Runner(made.path, [bad, Good()])
    runner.work(last=True)
    runner.close()
    states = {state.rule: state for state in read_rule_states(made.path)}
    assert states["good"].status is RuleStatus.ISSUE_FOUND
    assert states["good"].step_checked == 4
    assert [one.rule for one in read_findings(made.path)] == ["good"]
    return states[bad.name]


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (Raises(error=ZeroDivisionError("oh\nno.")), "): oh no. The rule is switched off, the others go on."),
        (Raises(error=KeyError("layer3")), "): 'layer3'. The rule is switched off, the others go on."),
        (Raises(error=SystemExit()), "). The rule is switched off, the others go on."),
        (Wants(), "LookupError before the first step (test_bad_rules.py, line "),
        (Answers(), "): it answered with a bool; expected a Finding or None."),
    ],
)
def test_rule_that_raises_is_switched_off_with_a_sentence(made: Made, bad: Rule, sentence: str) -> None:
    state = state_of(made, bad)
    assert state.status is RuleStatus.ERROR
    assert sentence in state.reason
    assert state.reason.count("\n") == 0


@pytest.mark.parametrize("kind", ["loops", "blocks"])
def test_rule_that_hangs_is_switched_off_and_the_others_go_on(made: Made, kind: str) -> None:
    forever = threading.Event()
    before = {one.ident for one in threading.enumerate()}
    state = state_of(made, Loops() if kind == "loops" else Blocks(forever=forever))
    assert state.status is RuleStatus.ERROR
    assert state.reason == (
        "A check took longer than 0.3 s at step 1: the rule is switched off, the others go on."
    )
    forever.set()
    deadline = time.monotonic() + 30
    while {one.ident for one in threading.enumerate()} - before:  # no thread is left behind
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_rule_that_hangs_does_not_hold_up_a_check_after_the_fact(made: Made) -> None:
    findings, states = check_run(made.path, [Loops(), Good()])
    assert [one.rule for one in findings] == ["good"]
    assert [str(state.status) for state in states] == ["error", "issue_found"]


def test_rules_are_asked_where_no_more_threads_may_be_started(made: Made) -> None:
    with no_more_threads():
        findings, states = check_run(made.path, [Raises(error=KeyError("x")), Good()])
    assert [one.rule for one in findings] == ["good"]
    assert [str(state.status) for state in states] == ["error", "issue_found"]


def test_tensor_that_was_not_captured_is_told_with_what_to_do(made: Made) -> None:
    _, (state,) = check_run(made.path, [DeadRelu()])
    assert state.status is RuleStatus.NOT_APPLICABLE
    assert state.reason == (
        "No activations were recorded so far; capture them with attach(collections={'activations': True})."
    )


def test_nan_goes_through_to_the_finding(made: Made) -> None:
    runner = Runner(made.path, [Good()])
    runner.work(last=True)
    runner.close()
    (finding,) = read_findings(made.path)
    assert np.isnan(finding.evidence["loss"])


def test_nan_in_the_data_switches_no_default_rule_off(made: Made) -> None:
    bad = np.full((4, 3), np.nan)
    names = ["a.weight", "gradient/a.weight", "activation/a", "loss/x", "optimizer/lr/0", "accuracy"]
    other = Made(made.path.parent / "nan")
    for step in range(40):
        other.step(step, dict.fromkeys(names, bad if step > 20 else np.ones((4, 3))))
    other.end()
    _, states = check_run(other.path)
    assert [state.reason for state in states if state.status is RuleStatus.ERROR] == []


def test_two_rules_of_one_name_are_told() -> None:
    with pytest.raises(ConfigError, match="dead_relu is given more than once; give each its own name"):
        resolve_rules([DeadRelu(), DeadRelu(patience=3)])
    with pytest.raises(ConfigError, match=r"There is a rule 'dead_relu' already, from tdbg_lab\.rules"):

        @rule("dead_relu")
        @dataclass(frozen=True)
        class Another(Rule):
            pass


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"patience": "ten"}, "dead_relu.patience is 'ten'; expected a whole number."),
        ({"patience": 2.5}, "dead_relu.patience is 2.5; expected a whole number."),
        ({"threshold_layer": [50]}, r"dead_relu.threshold_layer is \[50\]; expected a number."),
        ({"regex": "("}, "not a regular expression"),
        ({"patients": 3}, "no parameter 'patients'"),
    ],
)
def test_wrong_thresholds_are_told(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        resolve_rules(["dead_relu"], {"dead_relu": values})


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        (float, "a number"),
        (int, "a whole number"),
        (float | None, "a number or None"),
        (Union[int, None], "a whole number or None"),  # noqa: UP007
    ],
)
def test_types_are_told_where_annotations_are_not_postponed(annotation: Any, told: str) -> None:
    limit = ("limit", annotation, field(default=1))
    cls = make_dataclass("Mine", [limit], bases=(Rule,), frozen=True, kw_only=True)
    with pytest.raises(ConfigError, match=f"mine.limit is 'a'; expected {told}."):
        cls(limit="a")
    assert thresholds_of(cls)[0].type == told.replace("a whole number", "int").replace(
        "a number", "float"
    ).replace("or", "|")


def test_rule_needs_kind_of_its_own(made: Made) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Wants(Rule):
        def needs(self) -> Needs:
            return Needs(kinds=(Kind.INPUT, Kind.WEIGHT))

    _, (state,) = check_run(made.path, [Wants()])
    assert "attach(collections={'inputs': True})" in state.reason
