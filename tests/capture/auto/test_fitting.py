"""Trainings by a function of another library are given our callback, and the function is given back."""

from __future__ import annotations

import numpy as np
import pytest


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
