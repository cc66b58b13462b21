from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from tdbg_lab.errors import ConfigError
from tdbg_lab.rules import WeightUpdateRatio, check_run
from tests.rules import nets
from tests.rules.made import Made
from tests.rules.raws import record

if TYPE_CHECKING:
    from pathlib import Path

from tdbg_lab.records import Kind


@pytest.mark.parametrize(("rate", "factor"), [(1e-7, 10.0), (0.1, None)])
def test_rate_that_moves_nothing_is_found_with_its_fix(tmp_path: Path, rate: float, factor) -> None:
    torch.manual_seed(0)
    model = nets.mlp()
    run = nets.train(tmp_path / "run", model, torch.optim.SGD(model.parameters(), rate), steps=150)
    findings = check_run(run, [WeightUpdateRatio()])[0]
    fixes = [dict(one.fix or {}) for one in findings]
    assert fixes == ([{"setting": "learning_rate", "factor": factor}] if factor else [])


@pytest.mark.parametrize(("ratio", "fires"), [(10.0, False), (10.1, True), (1e-8, False), (9e-9, True)])
def test_classic_thresholds_are_exclusive(tmp_path: Path, ratio: float, fires) -> None:
    made = Made(tmp_path / "run").step(0, {"optimizer/update_ratio/a.weight": np.float64(ratio)})
    rule = WeightUpdateRatio(classic=True)
    if ratio == 1e-8:  # float32 of it lies below
        rule = WeightUpdateRatio(classic=True, small_threshold=float(np.float32(1e-8)))
    assert bool(made.check(rule)[0]) is fires


def test_classic_compares_raw_weights_of_two_saved_steps(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    record(made, 0, {"a.weight": np.full((2, 2), 1.0, np.float32)}, kind=Kind.WEIGHT)
    record(made, 1, {"a.weight": np.full((2, 2), 12.0, np.float32)}, kind=Kind.WEIGHT)
    made.end()
    (finding,), _ = made.check(WeightUpdateRatio(classic=True))
    assert finding.evidence["update_to_weight"] == pytest.approx(11.0)


def test_run_without_ratios_says_how_to_get_them(tmp_path: Path) -> None:
    made = Made(tmp_path / "run").step(0, {"loss/x": 1.0})
    assert "give attach() the optimizer" in made.check(WeightUpdateRatio())[1]["weight_update_ratio"].reason


def test_threshold_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"weight_update_ratio.max_ratio is 0"):
        WeightUpdateRatio(max_ratio=0)
