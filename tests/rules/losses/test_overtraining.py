from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Severity
from tdbg_lab.rules import Overtraining
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path


def write(made: Made, floor: float, decay: float) -> Made:
    random = np.random.default_rng(0)
    for step in range(60):
        train = floor + decay**step + random.normal() * 0.002
        made.step(step, {"loss/x": train}).step(
            step, {"loss/x": floor + decay**step + random.normal() * 0.002}, mode="eval"
        )
    return made


def test_flat_losses_are_a_notice(tmp_path: Path) -> None:
    (finding,), _ = write(Made(tmp_path / "run"), 0.3, 0.7).check(Overtraining())
    assert finding.severity is Severity.NOTICE
    assert finding.step_first > 15


@pytest.mark.parametrize(("attacks", "fires"), [(32, False), (8, True)])
def test_attacks_that_are_trained_on_are_no_evaluations(tmp_path: Path, attacks, fires) -> None:
    made = Made(tmp_path / "run").step(0, {"check/attacks": attacks})
    assert bool(write(made, 0.3, 0.7).check(Overtraining())[0]) is fires


def test_losses_that_fall_are_left_alone(tmp_path: Path) -> None:
    assert write(Made(tmp_path / "run"), 0.3, 0.98).check(Overtraining())[0] == []


@pytest.mark.parametrize(("steps", "fires"), [(10, False), (11, True)])
def test_classic_waits_for_both_patiences(tmp_path: Path, steps: int, fires) -> None:
    made = Made(tmp_path / "run")
    for step in range(steps):
        made.step(step, {"loss/x": 1.0 - 0.0009 * step}).step(step, {"loss/x": 2.0}, mode="eval")
    assert bool(made.check(Overtraining(classic=True))[0]) is fires


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_evaluations_that_are_no_numbers_are_left_to_others(tmp_path: Path, value: float) -> None:
    made = Made(tmp_path / "run")
    for step in range(20):
        made.step(step, {"loss/x": 1.0}).step(step, {"loss/x": value}, mode="eval")
    assert made.check(Overtraining(classic=True))[0] == made.check(Overtraining())[0] == []


def test_no_patience_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"overtraining.patience is 0"):
        Overtraining(patience=0)
