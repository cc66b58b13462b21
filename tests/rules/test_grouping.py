"""One root cause, one finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tdbg_lab.actions import RunCallable
from tdbg_lab.records import Finding, Kind, Severity
from tdbg_lab.rules import DeadRelu, LossNotDecreasing, Needs, Overfit, Rule, resolve_rules, run_rules
from tdbg_lab.rules.grouping import explains
from tdbg_lab.rules.runner import Runner
from tdbg_lab.store import pending, read_findings

from . import nets
from .made import Made

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Told(Rule):
    """Finds what a scalar of its own name says: 1 notice, 2 warning, 3 critical."""

    def needs(self) -> Needs:
        return Needs(kinds=(Kind.SCALAR,))

    def check(self, step: int, run: Any) -> Finding | None:
        value = run.value(self.name)
        level = Severity(("notice", "warning", "critical")[int(value) - 1]) if value else None
        return self.finding(step, self.name, severity=level) if level else None


class Root(Told):
    explains: ClassVar = ("leaf", "losses")


class Leaf(Told):
    pass


class Loss(Told):
    group = "losses"


class Other(Told):
    pass


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run")


def write(made: Made, **levels: Sequence[int]) -> None:
    for step, values in enumerate(zip(*levels.values(), strict=True)):
        made.step(step, dict(zip(levels, values, strict=True)))


def found(made: Made, *rules: Rule) -> dict[str, tuple[str, str]]:
    """Severity and rule of the cause, by rule."""
    findings = {one.id: one for one in made.check(*rules)[0]}
    causes = {one.rule: findings[one.cause].rule if one.cause else "" for one in findings.values()}
    return {one.rule: (str(one.severity), causes[one.rule]) for one in findings.values()}


def test_consequence_of_an_open_finding_names_it_and_is_a_notice(made: Made) -> None:
    write(made, root=[2, 2, 2, 2], leaf=[0, 2, 2, 2], loss=[0, 0, 2, 2], other=[0, 2, 2, 2])
    assert found(made, Root(), Leaf(), Loss(), Other()) == {
        "root": ("warning", ""),
        "leaf": ("notice", "root"),
        "loss": ("notice", "root"),
        "other": ("warning", ""),
    }


def test_order_of_the_rules_does_not_matter_at_one_step(made: Made) -> None:
    write(made, root=[0, 2, 2], leaf=[0, 2, 2])
    assert found(made, Leaf(), Root()) == {"root": ("warning", ""), "leaf": ("notice", "root")}


def test_consequence_told_shortly_before_its_cause_is_related_afterwards(made: Made) -> None:
    write(made, root=[0, 0, 0, 2, 2], leaf=[0, 2, 2, 2, 2])
    assert found(made, Leaf(), Root()) == {"root": ("warning", ""), "leaf": ("notice", "root")}


def test_finding_long_before_a_cause_is_a_trouble_of_its_own(made: Made) -> None:
    write(made, root=[0] * 30 + [2], leaf=[2] * 31)
    assert found(made, Leaf(), Root()) == {"root": ("warning", ""), "leaf": ("warning", "")}


def test_finding_after_the_cause_is_over_is_a_trouble_of_its_own(made: Made) -> None:
    write(made, root=[2] + [0] * 8, leaf=[0] * 7 + [2, 2])
    assert found(made, Root(), Leaf()) == {"root": ("warning", ""), "leaf": ("warning", "")}


@pytest.mark.parametrize("leaf", [[0, 3, 3], [0, 2, 3]])
def test_cause_is_as_severe_as_its_worst_consequence(made: Made, leaf: list[int]) -> None:
    write(made, root=[2, 2, 2], leaf=leaf)
    assert found(made, Root(), Leaf()) == {"root": ("critical", ""), "leaf": ("notice", "root")}


def test_notice_explains_nothing(made: Made) -> None:
    write(made, root=[1, 1, 1], leaf=[0, 2, 2])
    assert found(made, Root(), Leaf()) == {"root": ("notice", ""), "leaf": ("warning", "")}


def test_stop_names_the_cause_and_actions_of_a_consequence_are_performed_once(made: Made) -> None:
    write(made, root=[2, 2, 2, 2], leaf=[0, 3, 3, 3])
    told: list[str] = []
    action = RunCallable(function=lambda finding, context: told.append(finding.cause))
    runner = Runner(made.path, [Root(), Leaf(actions=action)], stop_on=Severity.CRITICAL)
    runner.work(last=True)
    (asked,) = pending(made.path)
    assert asked.by == "rule root"
    (root,) = (one for one in runner.findings if one.rule == "root")
    assert told == [root.id]


def test_relation_survives_another_runner(made: Made) -> None:
    levels = {"root": [0, 0, 2, 2, 2, 2], "leaf": [0, 2, 2, 2, 3, 3]}
    whole = Made(made.path.parent / "whole")
    write(whole, **levels)
    truth = {one.id: (one.cause, one.severity) for one in whole.check(Leaf(), Root())[0]}
    for step in range(6):
        made.step(step, {name: values[step] for name, values in levels.items()})
        Runner(made.path, [Leaf(), Root()]).work(last=True)  # dies without a word after every step
    latest = {one.id: (one.cause, one.severity) for one in read_findings(made.path)}
    assert latest == truth


def test_nan_everywhere_is_one_finding_about_where_it_began(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    findings = run_rules(nets.exploding(tmp_path / "run"))
    roots = [one for one in findings if not one.cause]
    assert [(one.rule, one.module) for one in roots if one.severity is not Severity.NOTICE] == [
        ("exploding_tensor", "3")
    ]
    assert {one.severity for one in findings if one.cause} <= {Severity.NOTICE}


def test_default_rules_explain_only_rules_and_groups_that_exist() -> None:
    from tdbg_lab.rules import list_rules
    from tdbg_lab.rules.base import GROUPS

    known = {"*", *GROUPS, *(cls.name for cls in list_rules())}
    for rule in resolve_rules("default"):
        assert set(rule.explains) <= known, rule.name


def test_units_that_died_explain_a_loss_that_is_stuck_and_not_one_that_is_learnt_by_heart() -> None:
    assert explains(DeadRelu(), LossNotDecreasing())
    assert not explains(DeadRelu(), Overfit())
