from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import RuleStatus, Severity
from tdbg_lab.rules import DeadUnits, check_run
from tests.rules import nets
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path

MARK = {"activation/act": ("activation_function",)}


class Functional(nn.Module):
    """The function is called, not made a module."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(F.silu(self.first(x)))


@pytest.mark.parametrize("activation", [nn.GELU, nn.SiLU, nn.ELU, nn.Hardtanh])
@pytest.mark.parametrize("bias", [-100.0, 0.0])
def test_units_pushed_to_their_limit_are_found(tmp_path: Path, activation, bias: float) -> None:
    torch.manual_seed(0)
    model = nets.mlp(32, 2, activation)
    with torch.no_grad():
        model[2].bias += bias
    run = nets.train(tmp_path / "run", model, torch.optim.Adam(model.parameters(), 1e-3), steps=80)
    findings = check_run(run, [DeadUnits()])[0]
    assert [one.tensor for one in findings] == (["activation/3"] if bias else [])
    assert all(one.severity is Severity.CRITICAL and one.step_first == 0 for one in findings)


def test_slope_of_leaky_relu_keeps_units_from_dying(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nets.mlp(32, 2, nn.LeakyReLU)
    with torch.no_grad():
        model[2].bias -= 100.0
    run = nets.train(tmp_path / "run", model, torch.optim.Adam(model.parameters(), 1e-3), steps=80)
    (finding,), _ = check_run(run, [DeadUnits()])
    assert finding.severity is Severity.WARNING
    assert "on their slope only" in finding.message


@pytest.mark.parametrize(("top", "fall", "found"), [(-0.1, 0.0, 1), (-0.1, 0.05, 0), (0.1, 0.0, 0)])
def test_layer_below_zero_is_found_when_the_loss_does_not_fall(
    tmp_path: Path, top: float, fall: float, found: int
) -> None:
    made, random = Made(tmp_path / "run"), np.random.default_rng(0)
    for step in range(30):
        values = top - random.random((64, 8))
        values[0, 0] = top
        made.step(step, {"activation/act": values, "loss/a": 2.0 - fall * step}, collections=MARK)
    made.end()
    findings = made.check(DeadUnits())[0]
    assert [one.message.split(" is above")[0] for one in findings] == ["No unit of activation/act"] * found


def test_function_that_is_called_is_judged_too(tmp_path: Path) -> None:
    model = Functional()
    with torch.no_grad():
        model.first.bias -= 100.0
    run = nets.train(tmp_path / "run", model, torch.optim.SGD(model.parameters(), 0.1), steps=80)
    (finding,) = check_run(run, [DeadUnits()])[0]
    assert finding.tensor == "activation/silu_0"


@pytest.mark.parametrize(("dead", "fires"), [(4, False), (5, True)])
def test_more_than_half_of_the_units(tmp_path: Path, dead: int, fires: bool) -> None:  # noqa: FBT001
    made = Made(tmp_path / "run")
    random = np.random.default_rng(0)
    for step in range(12):
        values = random.normal(size=(32, 8))
        values[:, :dead] = -1.0
        made.step(step, {"activation/act": values}, collections=MARK)
    made.end()
    assert bool(made.check(DeadUnits())[0]) is fires


def test_units_that_a_normalisation_centres_are_not_dead(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    random = np.random.default_rng(0)
    for step in range(12):
        values = random.normal(size=(32, 8))
        made.step(step, {"activation/act": values - values.mean(0)}, collections=MARK)
    made.end()
    assert made.check(DeadUnits())[0] == []


def test_says_that_there_is_no_such_function(tmp_path: Path) -> None:
    made = Made(tmp_path / "run").step(0, {"activation/relu": np.ones((8, 2))})
    made.end()
    state = made.check(DeadUnits())[1]["dead_units"]
    assert state.status is RuleStatus.NOT_APPLICABLE
    assert "No outputs of GELU, SiLU" in state.reason


def test_share_above_100_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"dead_units.threshold_layer is 101"):
        DeadUnits(threshold_layer=101)


class Rows(nn.Module):
    """Digits read row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(8, 24, batch_first=True), nn.Linear(24, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x.view(-1, 8, 8))[0][:, -1])


@pytest.mark.parametrize(("bias", "found"), [(-40.0, ["activation/rnn"]), (0.0, []), (0.5, [])])
def test_gates_that_are_shut_are_found(tmp_path: Path, bias: float, found: list[str]) -> None:
    torch.manual_seed(0)
    model = Rows()
    with torch.no_grad():
        for name, one in model.rnn.named_parameters():
            if name.startswith("bias"):
                one.add_(bias)
    run = nets.train(tmp_path / "run", model, torch.optim.Adam(model.parameters(), 3e-3), steps=80)
    findings = check_run(run)[0]
    alarms = [one for one in findings if one.severity is not Severity.NOTICE]
    assert [one.tensor for one in alarms if one.rule == "dead_units"] == found
    assert {one.rule for one in alarms} <= {"dead_units"}, [one.message for one in alarms]
