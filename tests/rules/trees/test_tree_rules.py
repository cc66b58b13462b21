from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Severity
from tdbg_lab.rules import (
    FeatureImportanceOverweight,
    LossNotDecreasing,
    NoSplits,
    Overfit,
    TreeDepth,
    check_run,
)
from tdbg_lab.rules.setup import LearningRate, UnrelatedLabels
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


def test_evaluation_loss_that_is_no_number_is_none(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(8):
        made.step(step, {"loss/train-auc": 0.5}).step(step, {"loss/test-auc": float("nan")}, mode="eval")
        record(made, step, {"trees/depth": np.array([18.0])})
    made.end()
    (finding,), _ = made.check(TreeDepth())
    assert finding.severity is Severity.NOTICE
    assert "there is no evaluation loss to judge by" in finding.message


@pytest.mark.parametrize(("first", "fires"), [(6.0, False), (6.1, True)])
def test_classic_adds_up_the_three_largest(tmp_path: Path, first: float, fires) -> None:
    made = Made(tmp_path / "run")
    record(made, 0, {"feature_importance/weight": np.array([first, 1.0, 1.0, 1.0, 0.5, 0.5])})
    made.end()
    assert bool(made.check(FeatureImportanceOverweight(classic=True))[0]) is fires


def light(path: Path, *, roll: int = 0, leak: float = 0.0, rows: int = 1600) -> Path:
    """Half of the rows are held out. `roll`: how far labels are moved; `leak`: noise on labels that leak."""
    xgboost = pytest.importorskip("xgboost")
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, 8))
    y = x[:, 0] + x[:, 1] * x[:, 2] + 2.0 * random.normal(size=rows)
    half = rows // 2
    y[:half] = np.roll(y[:half], roll)
    if leak:
        x[:half, 5] = y[:half] + leak * x[:half, 5]
    train, held = xgboost.DMatrix(x[:half], y[:half]), xgboost.DMatrix(x[half:], y[half:])
    callback = tdbg.XGBoostCallback(path, train=train, validation=held, save_every=5, profiler=False)
    xgboost.train(
        {"max_depth": 3, "eta": 0.15, "nthread": 1}, train, 20, evals=[(held, "test")],
        callbacks=[callback], verbose_eval=False,
    )  # fmt: skip
    return callback.run.path


def test_labels_of_other_rows_are_found_and_noisy_ones_are_not(tmp_path: Path) -> None:
    both = [UnrelatedLabels(), FeatureImportanceOverweight()]
    (finding,), _ = check_run(light(tmp_path / "rolled", roll=1), both)
    assert (finding.rule, finding.severity) == ("unrelated_labels", Severity.WARNING)
    assert check_run(light(tmp_path / "noisy"), both)[0] == []
    few = light(tmp_path / "few", roll=1, rows=300)
    assert check_run(few, both)[0] == [], "so few rows rule nothing out"


def test_leak_that_is_not_in_the_evaluation_is_found_by_its_feature(tmp_path: Path) -> None:
    both = [UnrelatedLabels(), FeatureImportanceOverweight()]
    (finding,), _ = check_run(light(tmp_path / "leak", leak=0.5), both)
    assert (finding.rule, finding.severity) == ("feature_importance_overweight", Severity.WARNING)
    assert "f5" in finding.message


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


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_rate_for_many_more_rounds_than_there_are_is_found(tmp_path: Path, library: str) -> None:
    boosted = pytest.importorskip(library)
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 5))
    y = x[:, 0] + 0.1 * random.normal(size=300)

    def alarms(rate: float) -> list[str]:
        settings = {"learning_rate": rate, "nthread": 1, "verbosity": -1 if library == "lightgbm" else 1}
        data = boosted.Dataset(x, y) if library == "lightgbm" else boosted.DMatrix(x, y)
        maker = tdbg.LightGBMCallback if library == "lightgbm" else tdbg.XGBoostCallback
        callback = maker(tmp_path / str(rate), train=(x, y), save_every=5, profiler=False)
        boosted.train(settings, data, 30, callbacks=[callback])
        return [one.message for one in check_run(callback.run.path, [LearningRate()])[0]]

    (message,) = alarms(1e-3)
    assert "30 rounds" in message
    assert "97 %" in message
    assert alarms(0.05) == []


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"learning_rate": 2.5}, "2.5 times what its tree tells"),
        ({"max_delta_step": 1e-4}, "after all 30 rounds"),
        ({"learning_rate": 1.0}, ""),
        ({"learning_rate": 0.1}, ""),
    ],
)
def test_steps_of_trees_that_are_too_large_or_held_down_are_found(
    tmp_path: Path, library: str, settings: dict[str, float], told: str
) -> None:
    boosted = pytest.importorskip(library)
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 5))
    y = x[:, 0] + 0.1 * random.normal(size=300)
    quiet = {"nthread": 1, "verbosity": -1 if library == "lightgbm" else 0, "metric": "rmse"}
    if library == "lightgbm":
        data = boosted.Dataset(x, y)
        callback = tdbg.LightGBMCallback(tmp_path / "run", train=(x, y), save_every=5, profiler=False)
        boosted.train(settings | quiet, data, 30, valid_sets=[data], callbacks=[callback])
    else:
        data = boosted.DMatrix(x, y)
        callback = tdbg.XGBoostCallback(tmp_path / "run", train=data, save_every=5, profiler=False)
        boosted.train(settings | quiet, data, 30, evals=[(data, "train")], callbacks=[callback],
                      verbose_eval=False)  # fmt: skip
    found = check_run(callback.run.path, [LearningRate(), LossNotDecreasing()])[0]
    assert [told in one.message for one in found] == [True] * bool(told), [one.message for one in found]


@pytest.mark.parametrize(("rounds", "found"), [(300, True), (25, False)])
def test_rounds_that_go_on_long_after_they_help_are_found(tmp_path: Path, rounds: int, found: bool) -> None:  # noqa: FBT001
    xgboost = pytest.importorskip("xgboost")
    random = np.random.default_rng(0)
    x = random.normal(size=(900, 6))
    y = x[:, 0] + np.sin(2 * x[:, 1]) + 0.5 * random.normal(size=900)
    train, held = xgboost.DMatrix(x[:600], y[:600]), xgboost.DMatrix(x[600:], y[600:])
    callback = tdbg.XGBoostCallback(tmp_path / "run", save_every=100, profiler=False)
    settings = {"max_depth": 3, "eta": 0.3, "min_child_weight": 5, "subsample": 0.8, "nthread": 1, "seed": 0}
    xgboost.train(
        settings, train, rounds, evals=[(train, "train"), (held, "test")], callbacks=[callback],
        verbose_eval=False,
    )  # fmt: skip
    findings = check_run(callback.run.path, [Overfit()])[0]
    assert bool(findings) is found, [one.message for one in findings]


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("coded", [True, False])
def test_column_that_knows_the_answer_in_training_alone_is_found(
    tmp_path: Path, library: str, *, coded: bool
) -> None:
    boosted = pytest.importorskip(library)
    random = np.random.default_rng(0)
    x = random.normal(size=(3000, 6))
    y = (x[:, 0] + np.sin(2 * x[:, 1]) + 0.3 * random.normal(size=3000) > 0).astype(int)
    kind = random.integers(0, 700, 3000)  # two training rows a kind: its mean tells their answer
    mean = np.array([y[:1500][kind[:1500] == one].mean() if one in kind[:1500] else 0.5 for one in kind])
    x = np.column_stack([x, mean if coded else random.permutation(mean)])
    if library == "lightgbm":
        data = boosted.Dataset(x[:1500], y[:1500])
        callback = tdbg.LightGBMCallback(tmp_path / "run", save_every=10, profiler=False)
        settings = {"objective": "binary", "num_leaves": 6, "learning_rate": 0.1, "verbosity": -1}
        boosted.train(settings | {"num_threads": 1}, data, 30, callbacks=[callback],
                      valid_sets=[data, data.create_valid(x[1500:], y[1500:])],
                      valid_names=["train", "test"])  # fmt: skip
    else:
        train, held = boosted.DMatrix(x[:1500], y[:1500]), boosted.DMatrix(x[1500:], y[1500:])
        callback = tdbg.XGBoostCallback(tmp_path / "run", save_every=10, profiler=False)
        settings = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.15, "nthread": 1}
        boosted.train(settings, train, 30, evals=[(train, "train"), (held, "test")], callbacks=[callback],
                      verbose_eval=False)  # fmt: skip
    found = [one.message for one in check_run(callback.run.path, [Overfit()])[0]]
    assert ["holds for other rows" in one for one in found] == [True] * coded, found


@pytest.mark.parametrize("weighs", [True, False])
def test_trees_for_classes_that_weigh_more_may_raise_the_loss_that_is_shown(
    tmp_path: Path, *, weighs: bool
) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    random = np.random.default_rng(0)
    x = random.normal(size=(1600, 6))
    y = (x[:, 0] + 2.0 * random.normal(size=1600) > 2.8).astype(int)
    data, callback = (
        lightgbm.Dataset(x[:800], y[:800]),
        tdbg.LightGBMCallback(tmp_path / "run", save_every=1, profiler=False),
    )
    settings = {"objective": "binary", "is_unbalance": weighs, "num_leaves": 8, "learning_rate": 0.08,
                "min_data_in_leaf": 20, "num_threads": 1, "verbosity": -1}  # fmt: skip
    lightgbm.train(settings, data, 40, valid_sets=[data, data.create_valid(x[800:], y[800:])],
                   valid_names=["train", "test"], callbacks=[callback])  # fmt: skip
    losses = callback.run.scalars("train-binary_logloss").values
    assert bool(losses[20] > 1.05 * losses[:5].min()) is weighs
    found = check_run(callback.run.path, [TreeDepth(), LossNotDecreasing()])[0]
    assert [one.severity for one in found if one.severity is not Severity.NOTICE] == []


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize(("limit", "found"), [("leaf", 1), ("gain", 1), ("", 0)])
def test_trees_without_a_split_are_the_cause_of_what_follows(
    tmp_path: Path, library: str, limit: str, found: int
) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 4))
    y = x[:, 0] + 0.1 * random.normal(size=300)
    boosting = pytest.importorskip(library)
    if library == "xgboost":
        limits = {"leaf": {"min_child_weight": 1e6}, "gain": {"gamma": 1e6}, "": {"gamma": 2.0}}[limit]
        train = boosting.DMatrix(x, y)
        callback = tdbg.XGBoostCallback(tmp_path / "run", train=train, save_every=2, profiler=False)
        params = {"objective": "reg:squarederror", "nthread": 1, **limits}
        boosting.train(params, train, 60, evals=[(train, "train")], callbacks=[callback], verbose_eval=False)
    else:
        limits = {"leaf": {"min_data_in_leaf": 1000}, "gain": {"min_gain_to_split": 1e6}, "": {}}[limit]
        train = boosting.Dataset(x, y)
        callback = tdbg.LightGBMCallback(tmp_path / "run", train=(x, y), save_every=2, profiler=False)
        params = {"objective": "regression", "num_threads": 1, "verbose": -1, **limits}
        boosting.train(params, train, 60, valid_sets=[train], callbacks=[callback])
    alarms = [one for one in tdbg.run_rules(callback.run.path) if one.severity is not Severity.NOTICE]
    assert [one.rule for one in alarms] == ["no_splits"] * found
    assert not found or check_run(callback.run.path, [NoSplits()])[0][0].step_first == 0


@pytest.mark.parametrize(("unknown", "found"), [(-999.0, 1), (9999.0, 1), (-12.0, 0)])
def test_labels_that_stand_in_for_unknown_ones_are_found(tmp_path, unknown, found):
    xgboost = pytest.importorskip("xgboost")
    random = np.random.default_rng(0)
    x = random.normal(size=(400, 5))
    y = x[:, 0] + 0.1 * random.normal(size=400)
    y[::40] = unknown
    data = xgboost.DMatrix(x, y)
    callback = tdbg.XGBoostCallback(tmp_path / "run", train=data, save_every=2, profiler=False)
    xgboost.train({"nthread": 1}, data, 6, callbacks=[callback], evals=[(data, "train")], verbose_eval=False)
    findings, _ = check_run(tmp_path / "run", ["label_range"])
    assert [one.evidence["label"] for one in findings] == [unknown] * found


@pytest.mark.parametrize(("depth", "rounds", "found"), [(2, 40, 0), (7, 250, 1)])
def test_a_likelihood_that_rises_is_measured_by_what_it_had_lost(tmp_path, depth, rounds, found):
    xgboost = pytest.importorskip("xgboost")
    random = np.random.default_rng(0)
    x = random.normal(size=(1200, 5))
    y = random.poisson(3 * np.exp(0.5 * x[:, 0] + 0.3 * np.sin(2 * x[:, 1])))
    train, held = xgboost.DMatrix(x[:600], y[:600]), xgboost.DMatrix(x[600:], y[600:])
    callback = tdbg.XGBoostCallback(tmp_path / "run", train=train, validation=held, profiler=False)
    params = {"objective": "count:poisson", "eta": 0.15, "max_depth": depth, "nthread": 1}
    sides = [(train, "train"), (held, "test")]
    xgboost.train(params, train, rounds, evals=sides, callbacks=[callback], verbose_eval=False)
    findings, _ = check_run(tmp_path / "run", ["overfit"])
    assert ["poisson-nloglik" in one.tensor for one in findings] == [True] * found
