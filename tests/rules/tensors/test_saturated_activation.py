from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Kind
from tdbg_lab.rules import SaturatedActivation, check_run
from tests.rules import nets
from tests.rules.made import Made
from tests.rules.raws import record

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("activation", [nn.Tanh, nn.Sigmoid])
@pytest.mark.parametrize("scale", [300.0, 1.0])
def test_layer_that_begins_saturated_is_found(tmp_path: Path, activation, scale: float) -> None:
    torch.manual_seed(0)
    model = nets.mlp(32, 2, activation)
    with torch.no_grad():
        model[0].weight.mul_(scale)
    run = nets.train(tmp_path / "run", model, torch.optim.SGD(model.parameters(), 0.02), steps=100)
    findings = check_run(run, [SaturatedActivation()])[0]
    assert [one.tensor for one in findings] == (["activation/1"] if scale > 1 else [])


@pytest.mark.parametrize(("saturated", "fires"), [(2, False), (3, True)])
def test_classic_counts_elements_beyond_the_limits(tmp_path: Path, saturated: int, fires) -> None:
    made = Made(tmp_path / "run")
    values = np.zeros((10, 4), np.float32)
    values[:, :saturated] = 9.5
    record(made, 0, {"input/tanh": values}, kind=Kind.INPUT)
    made.end()
    assert bool(made.check(SaturatedActivation(classic=True))[0]) is fires


def test_last_layer_may_saturate(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(20):
        made.step(step, {"activation/lin": np.ones((8, 2)), "activation/sigmoid": np.ones((8, 2))})
    assert made.check(SaturatedActivation())[0] == []


def test_classic_says_how_to_record_its_inputs(tmp_path: Path) -> None:
    made = Made(tmp_path / "run").step(0, {"activation/tanh": np.ones((8, 2))})
    reason = made.check(SaturatedActivation(classic=True))[1]["saturated_activation"].reason
    assert "collections={'inputs'" in reason


def test_percentage_above_100_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"saturated_activation.threshold_layer is 101"):
        SaturatedActivation(threshold_layer=101)


@pytest.mark.parametrize("scale", [300.0, 1.0])
def test_recurrent_layer_that_begins_saturated_is_found(tmp_path: Path, scale: float) -> None:
    class Rows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head = nn.RNN(8, 24, batch_first=True), nn.Linear(24, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.rnn(x.unflatten(1, (8, 8)))[0][:, -1])

    torch.manual_seed(0)
    model = Rows()
    with torch.no_grad():
        model.rnn.weight_ih_l0.mul_(scale)
    run = nets.train(tmp_path / "run", model, torch.optim.SGD(model.parameters(), 0.02), steps=60)
    findings = check_run(run, [SaturatedActivation()])[0]
    assert [one.tensor for one in findings] == (["activation/rnn"] if scale > 1 else [])
