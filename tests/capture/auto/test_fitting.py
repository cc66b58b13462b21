"""Trainings by a function of another library are given our callback, and the function is given back."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tdbg_lab.capture.auto import AutoWatch


@pytest.fixture
def data():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(60, 4))
    return x, (x[:, 0] > 0).astype(int)


def test_xgboost_training_and_estimator_are_two_runs(watched, data):
    xgboost = pytest.importorskip("xgboost")
    original = xgboost.train
    x, y = data

    def program():
        matrix = xgboost.DMatrix(x, y)
        settings = {"objective": "binary:logistic", "nthread": 1}
        xgboost.train(settings, matrix, num_boost_round=3, evals=[(matrix, "train")], verbose_eval=False)
        xgboost.XGBClassifier(n_estimators=2, n_jobs=1).fit(x, y)

    first, second = watched(program)
    assert (first.status, first.last_step) == ("finished", 2)
    assert (second.status, second.last_step) == ("finished", 1)
    assert first.info.framework == "xgboost"
    assert xgboost.train is original
    assert xgboost.sklearn.train is original


def test_lightgbm_training_is_a_run(watched, data):
    lightgbm = pytest.importorskip("lightgbm")
    x, y = data

    def program():
        settings = {"objective": "binary", "verbose": -1, "num_threads": 1}
        lightgbm.train(settings, lightgbm.Dataset(x, y), num_boost_round=3)

    (run,) = watched(program)
    assert (run.status, run.last_step) == ("finished", 2)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("evaluates", [False, True])
@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_estimator_is_predicted_on_what_it_was_given(watched, data, library, evaluates):
    package = pytest.importorskip(library)
    x, y = data
    told, given = [], {"eval_set": [(x[:20], y[:20])]} if evaluates else {}
    of_library = {"n_jobs": 1} if library == "xgboost" else {"n_jobs": 1, "verbose": -1}
    kind = {"xgboost": "XGBClassifier", "lightgbm": "LGBMClassifier"}[library]

    def program():
        told.append(getattr(package, kind)(n_estimators=11, **of_library).fit(x, y, **given).predict_proba(x))

    program()
    (run,) = watched(program)
    assert (told[0] == told[1]).all()
    predictions = run.tensor("predictions")
    assert predictions.steps("train").tolist() == list(range(11))
    np.testing.assert_allclose(predictions.value(10, "train"), told[0][:, 1], rtol=1e-5)
    assert (predictions.labels(10, "train") == y).all()
    loss = {"xgboost": "train-logloss", "lightgbm": "training-binary_logloss"}[library]
    assert len(run.scalars(loss, mode="train")) == 11
    assert run.modes() == (["train", "eval"] if evaluates else ["train"])
    if evaluates:
        assert predictions.value(10, "eval").shape == (20,)
    assert not run.problems


def test_training_and_evaluation_matrices_are_predicted(watched, data):
    xgboost = pytest.importorskip("xgboost")
    x, y = data

    def program():
        train, test = xgboost.DMatrix(x[:40], y[:40]), xgboost.DMatrix(x[40:], y[40:])
        settings = {"objective": "binary:logistic", "nthread": 1}
        xgboost.train(settings, train, 3, evals=[(train, "train"), (test, "test")], verbose_eval=False)

    (run,) = watched(program)
    assert run.tensor("predictions").value(0, "train").shape == (40,)
    assert run.tensor("predictions").value(0, "eval").shape == (20,)
    assert run.tensor("average_shap").steps("train").tolist() == [0, 1, 2]


def test_data_of_which_no_rows_can_be_picked_are_left_out(watched, data):
    xgboost = pytest.importorskip("xgboost")
    x, y = data

    def program():
        xgboost.train({"nthread": 1}, xgboost.QuantileDMatrix(x, y), 2)
        xgboost.XGBRanker(n_estimators=2, n_jobs=1).fit(x, y, qid=np.arange(60) // 10)
        xgboost.XGBRegressor(n_estimators=2, n_jobs=1).fit(x, y, base_margin=np.ones(60))
        xgboost.XGBRegressor(n_estimators=2, n_jobs=1, missing=0.0).fit(x, y)

    for run in watched(program):
        assert run.last_step == 1
        assert "predictions" not in run.raw_names()
        assert not run.problems


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_cross_validation_is_a_run_of_means_over_the_folds(watched, data, library):
    package = pytest.importorskip(library)
    original, told = package.cv, []

    def program():
        if library == "xgboost":
            settings = {"objective": "binary:logistic", "nthread": 1}
            told.append(package.cv(settings, package.DMatrix(*data), 3, nfold=2, as_pandas=False))
        else:
            settings = {"objective": "binary", "metric": "binary_logloss", "verbose": -1, "num_threads": 1}
            told.append(package.cv(settings, package.Dataset(*data), 3, nfold=2))

    (run,) = watched(program)
    assert (run.status, run.last_step) == ("finished", 2)
    name, of = {
        "xgboost": ("test-logloss", "test-logloss-mean"),
        "lightgbm": ("valid-binary_logloss", "valid binary_logloss-mean"),
    }[library]
    np.testing.assert_allclose(run.scalars(name).values, told[0][of])
    assert package.cv is original


def test_search_is_captured_up_to_a_number_of_trainings_and_that_is_said(tmp_path, data):
    xgboost = pytest.importorskip("xgboost")
    watch = AutoWatch({"store": tmp_path / "search", "profiler": False, "strict": True}, most=3)
    watch.start()
    try:
        scores = [
            xgboost.XGBClassifier(n_estimators=2, max_depth=d, n_jobs=1).fit(*data) for d in range(1, 6)
        ]
    finally:
        watch.stop()
    assert len(scores) == 5
    names = ["search", "search-2", "search-3"]
    assert [path.name for path in watch.run_paths] == sorted(one.name for one in tmp_path.iterdir()) == names
    assert watch.summary() == (
        f"captured 3 trainings: {tmp_path / 'search'} to {tmp_path / 'search-3'}; "
        "that is the most to capture, later trainings were left alone."
    )


def test_run_is_where_the_program_was_started_wherever_it_goes(watched, data, tmp_path):
    xgboost = pytest.importorskip("xgboost")

    def program():
        (tmp_path / "outputs").mkdir()
        os.chdir(tmp_path / "outputs")
        xgboost.XGBClassifier(n_estimators=2, n_jobs=1).fit(*data)

    (run,) = watched(program)
    assert run.path == tmp_path / "runs" / "auto"


def test_trainings_in_threads_are_a_run_each(watched, data):
    """As of a search with ``n_jobs=2``; one that fails at once leaves its place to the next."""
    xgboost = pytest.importorskip("xgboost")
    x, y = data
    meet = threading.Barrier(2, timeout=60)

    class Meeting(xgboost.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            meet.wait()
            return False

    def fit(rounds):
        xgboost.XGBClassifier(n_estimators=rounds, n_jobs=1, callbacks=[Meeting()]).fit(x, y)

    def program():
        with pytest.raises(ValueError, match="does not exist"):
            xgboost.XGBClassifier(n_estimators=2, objective="does not exist").fit(x, y)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(fit, (3, 3)))
        xgboost.XGBClassifier(n_estimators=2, n_jobs=1).fit(x, y)

    runs = watched(program)
    assert [run.path.name for run in runs] == ["auto", "auto-2", "auto-3"]
    assert sorted(run.last_step for run in runs) == [1, 2, 2]
    assert {run.status for run in runs} == {"finished"}
