from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from tdbg_lab.errors import ConfigError
from tdbg_lab.rules import SimilarAcrossRuns, check_run
from tests.rules import nets
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path


def train(path: Path, seed: int) -> Path:
    torch.manual_seed(seed)
    model = nets.mlp(16, 1)
    return nets.train(path, model, torch.optim.SGD(model.parameters(), 0.1), steps=20)


@pytest.mark.parametrize("classic", [False, True])
def test_run_that_is_repeated_is_similar_and_another_seed_is_not(tmp_path: Path, classic) -> None:
    first, same, other = train(tmp_path / "a", 0), train(tmp_path / "b", 0), train(tmp_path / "c", 1)
    rule = SimilarAcrossRuns(other=str(first), classic=classic)
    assert check_run(same, [rule])[0] == []
    (finding,), _ = check_run(other, [rule])
    assert finding.step_first == 0


@pytest.mark.parametrize(("difference", "default", "classic"), [(1e-4, 0, 1), (1e-2, 1, 1), (1e-7, 0, 0)])
def test_tolerance_is_relative(tmp_path: Path, difference: float, default: int, classic: int) -> None:
    one = Made(tmp_path / "one").step(0, {"a.weight": np.full(4, 2.0)})
    one.end()
    other = Made(tmp_path / "other").step(0, {"a.weight": np.full(4, 2.0 * (1 + difference))})
    other.end()
    path = str(one.path)
    assert len(other.check(SimilarAcrossRuns(other=path))[0]) == default
    assert len(other.check(SimilarAcrossRuns(other=path, classic=True))[0]) == classic


def test_missing_run_is_told(tmp_path: Path) -> None:
    made = Made(tmp_path / "run").step(0, {"a.weight": np.ones(4)})
    state = made.check(SimilarAcrossRuns())[1]["similar_across_runs"]
    assert "No run to compare with" in state.reason
    state = made.check(SimilarAcrossRuns(other=str(tmp_path / "gone")))[1]["similar_across_runs"]
    assert "gone" in state.reason


def test_negative_tolerance_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"similar_across_runs.tolerance is -1"):
        SimilarAcrossRuns(tolerance=-1)
