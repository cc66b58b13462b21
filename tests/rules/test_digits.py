"""Real trainings: each rule finds its trouble, none finds any in healthy ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

import tdbg_lab as tdbg
from tdbg_lab.records import RuleStatus, Severity
from tdbg_lab.rules import check_run

from . import nets

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("name", sorted(nets.HEALTHY))
def test_no_rule_alarms_on_a_healthy_training(tmp_path: Path, name: str) -> None:
    findings, states = check_run(nets.HEALTHY[name](tmp_path / name), strict=True)
    assert [finding.message for finding in findings] == []
    assert {state.status for state in states} <= {RuleStatus.NO_ISSUE, RuleStatus.NOT_APPLICABLE}
    loss = {state.rule: state for state in states}["loss_not_decreasing"]
    assert loss.status is RuleStatus.NO_ISSUE
    assert loss.step_checked > 100


@pytest.mark.parametrize("rule", sorted(nets.FAULTY))
def test_each_rule_finds_its_trouble(tmp_path: Path, rule: str) -> None:
    findings = tdbg.run_rules(nets.FAULTY[rule](tmp_path / rule))
    assert rule in {finding.rule for finding in findings}


def test_dead_layer_is_named(tmp_path: Path) -> None:
    (finding,) = tdbg.invoke_rule("dead_relu", nets.dead_relu(tmp_path / "run"))
    assert (finding.tensor, finding.module) == ("activation/3", "3")
    assert finding.severity is Severity.CRITICAL
    assert 40 <= finding.step_first <= 95


def test_too_large_a_learning_rate_kills_units(tmp_path: Path) -> None:
    findings = tdbg.run_rules(nets.dead_relu_by_rate(tmp_path / "run"))
    (rate,) = (finding for finding in findings if finding.rule == "learning_rate")
    (dead,) = (finding for finding in findings if finding.rule == "dead_relu")
    assert dead.cause == rate.id
    roots = {finding.rule for finding in findings if not finding.cause}
    assert roots <= {"learning_rate", "constant_output"}, "its step is known by outputs that are all the same"


def test_first_layer_that_breaks_is_named(tmp_path: Path) -> None:
    (finding,) = tdbg.run_rules(nets.exploding(tmp_path / "run"))
    assert finding.rule == "exploding_tensor"
    assert (finding.tensor, finding.step_first) == ("activation/3", 60)
    assert finding.severity is Severity.CRITICAL


def test_weights_that_explode_are_critical(tmp_path: Path) -> None:
    (finding,) = tdbg.run_rules(nets.exploding_by_rate(tmp_path / "run"))
    assert (finding.rule, finding.severity) == ("exploding_tensor", Severity.CRITICAL)
    assert finding.step_first < 10


def test_vanishing_gradients_explain_the_stuck_loss(tmp_path: Path) -> None:
    findings = tdbg.run_rules(nets.vanishing(tmp_path / "run"))
    (finding,) = [one for one in findings if not one.cause]
    assert (finding.rule, finding.tensor) == ("vanishing_gradient", "gradient/0.weight")
    assert finding.evidence["relative_to_strongest"] < 1e-5


def test_loss_that_diverges_is_found(tmp_path: Path) -> None:
    findings = tdbg.run_rules(nets.diverging(tmp_path / "run"), ["loss_not_decreasing"])
    assert len(findings) == 1
    assert 200 < findings[0].step_first < 240


def test_run_object_is_as_good_as_its_path(tmp_path: Path) -> None:
    path = nets.train(tmp_path / "run", model := nets.mlp(), nets._sgd(model), steps=30)
    assert tdbg.run_rules(tdbg.open_run(path)) == tdbg.run_rules(path) == []


def test_run_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(tdbg.TdbgError, match="no run"):
        tdbg.run_rules(tmp_path)
