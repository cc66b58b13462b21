from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import RuleStatus
from tdbg_lab.rules import AllZero, check_run
from tests.rules import nets
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path


class Mask(nn.Module):
    def __init__(self, *, keep) -> None:
        super().__init__()
        self.keep = float(keep)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.keep


@pytest.mark.parametrize(("keep", "found"), [(False, ["activation/1"]), (True, [])])
def test_masked_layer_is_found_and_the_same_net_without_is_not(tmp_path: Path, keep, found) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), Mask(keep=keep), nn.Tanh(), nn.Linear(32, 10))
    run = nets.train(tmp_path / "run", model, torch.optim.SGD(model.parameters(), 0.1), steps=80)
    assert [one.tensor for one in check_run(run, [AllZero()])[0]] == found


@pytest.mark.parametrize(("zeros", "fires"), [(8, True), (7, False)])
def test_classic_threshold_includes_its_boundary(tmp_path: Path, zeros: int, fires) -> None:
    made = Made(tmp_path / "run").step(0, {"a.weight": np.r_[np.zeros(zeros), np.ones(10 - zeros)]})
    findings, _ = made.check(AllZero(classic=True, threshold=80, regex=r"\.weight$"))
    assert bool(findings) is fires


def test_weight_that_begins_at_zero_and_frozen_zeros_are_healthy(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(30):
        late = np.zeros((4, 4)) if step < 2 else np.full((4, 4), 0.1)
        made.step(
            step,
            {"late.weight": late, "frozen.weight": np.zeros((4, 4)), "gradient/late.weight": np.ones((4, 4))},
        )
    assert made.check(AllZero())[0] == []


def test_classic_without_such_a_tensor_says_so(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(4):
        made.step(step, {"loss/x": 1.0})
    state = made.check(AllZero(classic=True, regex="conv"))[1]["all_zero"]
    assert state.status is RuleStatus.NOT_APPLICABLE
    assert "a name like 'conv'" in state.reason


def test_threshold_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"all_zero.threshold is 0"):
        AllZero(threshold=0)
