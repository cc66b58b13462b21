"""Boosters that a loop of the program's own updates are followed, round by round."""

from __future__ import annotations

import numpy as np
import pytest

from tdbg_lab import TrainingStopped, open_run
from tdbg_lab.store.control import request

STUMPS = {"objective": "binary:logistic", "nthread": 1, "max_depth": 2, "eval_metric": "logloss"}
LEAVES = {"objective": "binary", "metric": "binary_logloss", "verbose": -1, "num_threads": 1, "num_leaves": 4}


@pytest.fixture
def data():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(80, 4))
    return x, (x[:, 0] > 0).astype(int)


@pytest.mark.parametrize("own_objective", [False, True])
def test_rounds_of_xgboost_with_what_is_evaluated_after_each(watched, data, own_objective):
    xgboost = pytest.importorskip("xgboost")
    methods = {name: vars(xgboost.Booster)[name] for name in ("update", "boost", "eval_set")}
    told, predicted = [], []

    def gradients(predictions, matrix):
        p = 1 / (1 + np.exp(-predictions))
        return p - matrix.get_label(), p * (1 - p)

    def program():
        matrix, other = (
            xgboost.DMatrix(data[0][:60], data[1][:60]),
            xgboost.DMatrix(data[0][60:], data[1][60:]),
        )
        booster = xgboost.Booster(STUMPS, [matrix, other])
        for i in range(12):
            booster.update(matrix, i, fobj=gradients if own_objective else None)
            text = booster.eval_set([(matrix, "train"), (other, "test")], i)
            told.append([float(part.rpartition(":")[2]) for part in text.split("\t")[1:]])
        predicted.append(booster.predict(other))

    (run,) = watched(program)
    assert (run.status, run.last_step, run.info.framework) == ("finished", 11, "xgboost")
    assert run.info.hyperparameters["max_depth"] == 2
    for name, column in (("train-logloss", 0), ("test-logloss", 1)):
        found = run.scalars(name, mode="train" if column == 0 else "eval")
        np.testing.assert_allclose(found.values, [row[column] for row in told], rtol=1e-6)
    assert run.tensor("feature_importance/gain").steps().tolist() == list(range(12))
    assert {name: vars(xgboost.Booster)[name] for name in methods} == methods
    seen = predicted.pop()
    program()
    assert np.array_equal(seen, predicted.pop()), "the booster is the one of a program that nobody watches"


def test_rounds_of_lightgbm_with_what_is_evaluated_after_each(watched, data):
    lightgbm = pytest.importorskip("lightgbm")
    told = []

    def program():
        train = lightgbm.Dataset(data[0][:60], data[1][:60])
        booster = lightgbm.Booster(LEAVES, train)
        booster.add_valid(lightgbm.Dataset(data[0][60:], data[1][60:], reference=train), "test")
        for _ in range(5):
            booster.update()
            told.append([booster.eval_train()[0][2], booster.eval_valid()[0][2]])

    (run,) = watched(program)
    assert (run.status, run.last_step, run.info.framework) == ("finished", 4, "lightgbm")
    train, test = (
        run.scalars(name, mode=mode).values
        for name, mode in (("training-binary_logloss", "train"), ("test-binary_logloss", "eval"))
    )
    np.testing.assert_allclose(np.stack([train, test], axis=1), told)


def test_each_booster_is_a_run_and_train_is_left_to_its_callback(watched, data):
    xgboost = pytest.importorskip("xgboost")

    def program():
        matrix = xgboost.DMatrix(*data)
        for rounds in (2, 3):
            booster = xgboost.Booster(STUMPS, [matrix])
            for i in range(rounds):
                booster.update(matrix, i)
        xgboost.train(STUMPS, matrix, 4)

    assert [run.last_step for run in watched(program)] == [1, 2, 3]


def test_an_error_in_the_loop_ends_the_run_as_failed_with_all_rounds(watched, data, tmp_path):
    xgboost = pytest.importorskip("xgboost")

    def program():
        matrix = xgboost.DMatrix(*data)
        booster = xgboost.Booster(STUMPS, [matrix])
        for i in range(5):
            booster.update(matrix, i)
        raise KeyError("lost")

    with pytest.raises(KeyError):
        watched(program)
    run = open_run(tmp_path / "runs" / "auto")
    assert (run.status, run.last_step) == ("failed", 4)


def test_a_request_to_stop_ends_the_loop(watched, data, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    made = []

    def program():
        matrix = xgboost.DMatrix(*data)
        booster = xgboost.Booster(STUMPS, [matrix])
        for i in range(10_000):
            booster.update(matrix, i)
            if i == 1:
                request(tmp_path / "runs" / "auto", "stop", reason="enough")
            made.append(i)

    with pytest.raises(TrainingStopped, match="enough"):
        watched(program)
    assert open_run(tmp_path / "runs" / "auto").last_step == len(made) - 1
