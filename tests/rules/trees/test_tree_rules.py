from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Severity
from tdbg_lab.rules import FeatureImportanceOverweight, Overfit, TreeDepth, check_run
from tests.rules.made import Made
from tests.rules.raws import record

if TYPE_CHECKING:
    from pathlib import Path


def boost(path: Path, *, noise: float, depth: int, leak: bool = False) -> Path:
    xgboost = pytest.importorskip("xgboost")
    random = np.random.default_rng(0)
    x = random.normal(size=(600, 8))
    y = (x[:, 0] + x[:, 1] + x[:, 2] + noise * random.normal(size=600) > 0).astype(int)
    if leak:
        x[:, 5] = y + 0.01 * x[:, 5]
    train, held = xgboost.DMatrix(x[:200], y[:200]), xgboost.DMatrix(x[200:], y[200:])
    callback = tdbg.XGBoostCallback(path, train=train, validation=held, save_every=5, profiler=False)
    params = {"objective": "binary:logistic", "max_depth": depth, "eta": 0.5, "nthread": 1}
    xgboost.train(
        params,
        train,
        60,
        evals=[(train, "train"), (held, "test")],
        callbacks=[callback],
        verbose_eval=False,
    )
    return callback.run.path


def test_deep_trees_on_noise_are_found_and_shallow_ones_on_signal_are_not(tmp_path: Path) -> None:
    (finding,), _ = check_run(boost(tmp_path / "deep", noise=6.0, depth=10), [TreeDepth()])
    assert finding.severity is Severity.WARNING
    usual = boost(tmp_path / "usual", noise=6.0, depth=6)
    assert check_run(usual, [TreeDepth()])[0] == [], "XGBoost's own default"
    assert check_run(usual, [TreeDepth(min_depth=6)])[0]
    assert check_run(boost(tmp_path / "shallow", noise=0.5, depth=3), [TreeDepth()])[0] == []


@pytest.mark.parametrize(("depth", "found"), [(14, 1), (2, 0)])
def test_deep_trees_that_know_wrong_labels_by_heart_are_found_though_the_loss_still_falls(
    tmp_path: Path, depth: int, found: int
) -> None:
    xgboost = pytest.importorskip("xgboost")
    random = np.random.default_rng(0)
    x = random.normal(size=(800, 4))
    y = (x[:, 0] > 0).astype(int)
    wrong = random.random(800) < 0.3
    y[:400][wrong[:400]] = 1 - y[:400][wrong[:400]]
    train, held = xgboost.DMatrix(x[:400], y[:400]), xgboost.DMatrix(x[400:], y[400:])
    callback = tdbg.XGBoostCallback(
        tmp_path / "run", train=train, validation=held, save_every=1, profiler=False
    )
    params = {"objective": "binary:logistic", "max_depth": depth, "min_child_weight": 0, "lambda": 0}
    xgboost.train(
        params | {"eta": 0.5, "nthread": 1}, train, 6, evals=[(train, "train"), (held, "test")],
        callbacks=[callback], verbose_eval=False,
    )  # fmt: skip
    findings = check_run(callback.run.path, [TreeDepth()])[0]
    assert ["of the training rows right" in one.message for one in findings] == [True] * found


def test_overfit_sees_the_losses_of_boosting(tmp_path: Path) -> None:
    (finding,), _ = check_run(boost(tmp_path / "run", noise=6.0, depth=10), [Overfit()])
    assert finding.tensor == "test-logloss"


def test_leak_is_found_and_shared_importance_is_not(tmp_path: Path) -> None:
    rule = FeatureImportanceOverweight()
    (finding,), _ = check_run(boost(tmp_path / "leak", noise=1.0, depth=3, leak=True), [rule])
    assert finding.severity is Severity.WARNING
    assert "f5" in finding.message
    assert check_run(boost(tmp_path / "fair", noise=1.0, depth=3), [rule])[0] == []


@pytest.mark.parametrize(("largest", "fires"), [(16, False), (17, True)])
def test_classic_depth_is_the_logarithm_of_the_largest_node(tmp_path: Path, largest: int, fires) -> None:
    made = Made(tmp_path / "run")
    record(made, 0, {"trees/Node": np.arange(largest + 1)})
    made.end()
    assert bool(made.check(TreeDepth(classic=True))[0]) is fires


@pytest.mark.parametrize(("first", "fires"), [(6.0, False), (6.1, True)])
def test_classic_adds_up_the_three_largest(tmp_path: Path, first: float, fires) -> None:
    made = Made(tmp_path / "run")
    record(made, 0, {"feature_importance/weight": np.array([first, 1.0, 1.0, 1.0, 0.5, 0.5])})
    made.end()
    assert bool(made.check(FeatureImportanceOverweight(classic=True))[0]) is fires


def test_run_without_trees_says_where_they_come_from(tmp_path: Path) -> None:
    states = (
        Made(tmp_path / "run").step(0, {"loss/x": 1.0}).check(TreeDepth(), FeatureImportanceOverweight())[1]
    )
    assert all("callback of XGBoost" in state.reason for state in states.values())


def test_thresholds_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"feature_importance_overweight.threshold is 80"):
        FeatureImportanceOverweight(threshold=80)
    with pytest.raises(ConfigError, match=r"tree_depth.depth is -1"):
        TreeDepth(depth=-1)
