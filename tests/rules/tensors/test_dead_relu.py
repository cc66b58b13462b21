from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.records import RuleStatus, Severity
from tdbg_lab.rules import DeadRelu
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path

UNITS = 20
WEIGHT = {"lin.weight": np.ones((2, 2))}


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run")


def outputs(step: int, *, dead: int = 0, fires: float = 0.5, batch: int = 64) -> np.ndarray:
    """ReLU outputs of `UNITS` units: the first `dead` never fire, the others for a share of the samples."""
    random = np.random.default_rng(step)
    values = random.exponential(size=(batch, UNITS)) * (random.random((batch, UNITS)) < fires)
    values[:, :dead] = 0
    return values


def test_units_that_never_fire_are_found(made: Made) -> None:
    for step in range(30):
        made.step(step, WEIGHT | {"activation/relu1": outputs(step, dead=12 if step >= 10 else 0)})
    (finding,), _ = made.check(DeadRelu())
    assert (finding.tensor, finding.severity) == ("activation/relu1", Severity.WARNING)
    assert finding.evidence["dead_units_count"] == 12
    assert finding.evidence["dead_units_percent"] == 60
    assert (finding.step_first, finding.step_last) == (10, 29)
    assert finding.view is not None
    assert (finding.view.name, dict(finding.view.params)) == ("histogram", {"tensor": "activation/relu1"})


@pytest.mark.parametrize(
    ("died", "severity"), [("at once", Severity.WARNING), ("one by one", Severity.NOTICE)]
)
def test_units_that_died_one_by_one_are_worth_a_notice_where_a_loss_is_recorded(
    made: Made, died: str, severity: Severity
) -> None:
    for step in range(60):
        dead = (12 if step >= 20 else 0) if died == "at once" else min(12, step // 3)
        made.step(step, {"activation/relu1": outputs(step, dead=dead), "loss/a": 1.5})
    found, _ = made.check(DeadRelu())
    assert max(one.severity for one in found) is severity


def test_layer_that_is_nearly_gone_is_critical(made: Made) -> None:
    for step in range(12):
        made.step(step, {"activation/relu1": outputs(step, dead=19)})
    (finding,), _ = made.check(DeadRelu())
    assert finding.severity is Severity.CRITICAL


def test_sparse_layer_whose_units_fire_at_times_is_healthy(made: Made) -> None:
    for step in range(40):
        made.step(step, {"activation/relu1": outputs(step, fires=0.03)})
    assert made.check(DeadRelu())[0] == []


def test_classic_condition_judges_single_batches(made: Made) -> None:
    for step in range(5):
        made.step(step, {"activation/relu1": outputs(step, fires=0.005)})
    assert made.check(DeadRelu())[0] == []
    (finding,), _ = made.check(DeadRelu(classic=True))
    assert finding.step_first == 0


def test_too_few_observations_are_not_judged(made: Made) -> None:
    for step in range(20):
        made.step(step, {"activation/relu1": outputs(step, dead=20, batch=2)})
    assert made.check(DeadRelu())[0] == []
    assert len(made.check(DeadRelu(min_observations=20))[0]) == 1


def test_small_batches_are_added_up_until_there_are_enough_observations(made: Made) -> None:
    for step in range(40):
        made.step(step, {"activation/relu1": outputs(step, dead=15, batch=16)})
    (finding,), _ = made.check(DeadRelu())
    assert (finding.evidence["batches_count"], finding.step_first) == (16, 0)
    assert finding.evidence["observations_per_unit_count"] == 256


def test_dead_layers_of_one_cause_are_one_finding_about_the_first(made: Made) -> None:
    for step in range(15):
        names = ("activation/relu1", "activation/relu2", "activation/relu3")
        made.step(
            step, {name: outputs(step, dead=dead) for name, dead in zip(names, (0, 15, 20), strict=True)}
        )
    (finding,), _ = made.check(DeadRelu())
    assert finding.tensor == "activation/relu2"
    assert finding.evidence["layers"] == "activation/relu2, activation/relu3"


def test_hysteresis_keeps_a_finding_that_wavers_at_the_threshold(made: Made) -> None:
    for step in range(60):
        made.step(step, {"activation/relu1": outputs(step, dead=11 if step % 20 < 12 else 9)})
    findings, _ = made.check(DeadRelu(patience=3, min_observations=100))
    assert len(findings) == 1


def test_steps_without_activations_are_no_all_clear(made: Made) -> None:
    for step in range(200):
        made.step(
            step, {"loss/a": 1.0} | ({"activation/relu1": outputs(step, dead=20)} if step % 10 == 0 else {})
        )
    findings, _ = made.check(DeadRelu())
    assert len(findings) == 1
    assert findings[0].step_last == 190


@pytest.mark.parametrize(
    ("tensors", "collections"),
    [
        (lambda relu: {"activation/act": relu}, {"activation/act": ("activations", "relu")}),
        (lambda relu: {**WEIGHT, "activation/lin": relu - 1, "activation/5": relu}, {}),
    ],
    ids=["by its collection", "by its behaviour"],
)
def test_relu_is_known_without_its_name(made: Made, tensors, collections) -> None:
    for step in range(12):
        made.step(step, tensors(outputs(step, dead=20)), collections=collections)
    (finding,), _ = made.check(DeadRelu())
    assert finding.tensor in ("activation/act", "activation/5")


def test_data_with_constant_zeros_are_no_relu(made: Made) -> None:
    for step in range(12):
        made.step(step, {"activation/flatten": outputs(step, dead=15), "activation/lin": outputs(step) - 1})
    findings, states = made.check(DeadRelu())
    assert findings == []
    assert states["dead_relu"].status is RuleStatus.NOT_APPLICABLE
    assert "ReLU" in states["dead_relu"].reason
