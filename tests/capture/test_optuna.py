"""Studies of Optuna: a trial that is not worth its time is stopped by its pruner, and has not failed."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
import torch
from capture_training import Net, train
from sklearn.datasets import load_breast_cancer

import tdbg_lab as tdbg
from tdbg_lab.capture.auto import AutoWatch
from tdbg_lab.capture.auto.studies import suggested

optuna = pytest.importorskip("optuna", reason="this is about Optuna")

NOTHING = optuna.pruners.ThresholdPruner(upper=-1.0)
"""Nothing is worth its time: no loss is below."""
EVERYTHING = optuna.pruners.NopPruner()


@pytest.fixture(autouse=True)
def _quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def states(objective, pruner, trials=1, *, jobs=1):
    """How the trials of a study ended."""
    study = optuna.create_study(pruner=pruner, sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=trials, n_jobs=jobs, catch=(ZeroDivisionError,))
    gc.collect()
    return [trial.state.name for trial in study.trials]


@pytest.mark.parametrize(
    ("pruner", "trial", "status", "error"),
    [(NOTHING, "PRUNED", "stopped", "pruned"), (EVERYTHING, "COMPLETE", "finished", None)],
)
def test_each_trial_is_a_run(attach, tmp_path, pruner, trial, status, error):
    def objective(trial):
        model = Net()
        rate = trial.suggest_float("lr", 0.01, 0.1, log=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        with attach(model, optimizer=optimizer, hyperparameters=trial.params) as handle:
            for epoch in range(2):
                train(model, optimizer, 1)
                trial.report(0.5, epoch)
                if trial.should_prune():
                    raise optuna.TrialPruned
        assert handle.run.info.hyperparameters == trial.params
        return 0.5

    assert states(objective, pruner, 2) == [trial] * 2
    runs = [tdbg.open_run(tmp_path / name) for name in ("run", "run-2")]
    assert [(str(run.status), run.info.error) for run in runs] == [(status, error)] * 2
    assert {run.last_step for run in runs} == {0 if error else 1}


def test_trials_side_by_side_are_runs_of_their_own(attach, tmp_path):
    first, together = threading.Event(), threading.Barrier(2, timeout=60)

    def objective(trial):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=trial.suggest_float("lr", 0.01, 0.1))
        if trial.number:
            assert first.wait(60)
        with attach(model, optimizer=optimizer, hyperparameters=trial.params):
            first.set()
            together.wait()
            train(model, optimizer, 3)
        return 0.5

    assert states(objective, EVERYTHING, 2, jobs=2) == ["COMPLETE"] * 2
    runs = [tdbg.open_run(tmp_path / name) for name in ("run", "run-2")]
    assert [(str(run.status), run.steps().tolist()) for run in runs] == [("finished", [0, 1, 2])] * 2
    assert runs[0].info.hyperparameters != runs[1].info.hyperparameters


def break_down(_env):
    raise ZeroDivisionError


def xgboost_training(folder, trial, broken):
    xgboost = pytest.importorskip("xgboost", reason="this is about XGBoost")
    integration = pytest.importorskip("optuna_integration")

    class Broken(xgboost.callback.TrainingCallback):
        def after_iteration(self, *_args):
            break_down(None)

    matrix = xgboost.DMatrix(*load_breast_cancer(return_X_y=True))
    callback = tdbg.XGBoostCallback(folder, profiler=False, rules=None)
    pruning = integration.XGBoostPruningCallback(trial, "train-logloss")
    xgboost.train(
        {"objective": "binary:logistic"},
        matrix,
        3,
        evals=[(matrix, "train")],
        callbacks=[callback, pruning, *([Broken()] if broken else [])],
        verbose_eval=False,
    )


def lightgbm_training(folder, trial, broken):
    lightgbm = pytest.importorskip("lightgbm", reason="this is about LightGBM")
    integration = pytest.importorskip("optuna_integration")
    data = lightgbm.Dataset(*load_breast_cancer(return_X_y=True))
    callback = tdbg.LightGBMCallback(folder, profiler=False, rules=None)
    pruning = integration.LightGBMPruningCallback(trial, "binary_logloss", "training")
    lightgbm.train(
        {"objective": "binary", "verbose": -1},
        data,
        3,
        valid_sets=[data],
        valid_names=["training"],
        callbacks=[callback, pruning, *([break_down] if broken else [])],
    )


@pytest.mark.parametrize("training", [xgboost_training, lightgbm_training], ids=["xgboost", "lightgbm"])
@pytest.mark.parametrize(
    ("pruner", "broken", "trial", "status"),
    [
        (NOTHING, False, "PRUNED", "stopped"),
        (EVERYTHING, False, "COMPLETE", "finished"),
        (EVERYTHING, True, "FAIL", "failed"),
    ],
)
def test_boosting_that_its_pruner_ends_is_stopped(tmp_path, training, pruner, broken, trial, status):
    def objective(trial):
        training(tmp_path / "run", trial, broken)
        return 0.5

    assert states(objective, pruner) == [trial]
    run = tdbg.open_run(tmp_path / "run")
    assert run.status == status
    assert np.isfinite(run.stats(run.tensor_names(kind="loss"), "value")["value"]).all()


@pytest.mark.parametrize("jobs", [1, 2])
def test_trials_that_nobody_attached_to_are_stopped_too(tmp_path, jobs):
    together = threading.Barrier(jobs, timeout=60)

    def objective(trial):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=trial.suggest_float("lr", 0.01, 0.1))
        train(model, optimizer, 1)
        together.wait()
        trial.report(0.5, 0)
        if trial.number % 2 and trial.should_prune():
            raise optuna.TrialPruned
        if trial.number == 2:
            raise ZeroDivisionError("broken")
        train(model, optimizer, 1)
        return 0.5

    with AutoWatch({"store": tmp_path / "run", "save_every": 1, "profiler": False, "strict": True}) as watch:
        found = states(objective, NOTHING, 4, jobs=jobs)
    assert optuna.Study.optimize.__module__ == "optuna.study.study"
    assert not hasattr(optuna.Study.optimize, "__wrapped__")
    assert sorted(found) == ["COMPLETE", "FAIL", "PRUNED", "PRUNED"]
    runs = [tdbg.open_run(path) for path in watch.run_paths]
    assert sorted((str(run.status), run.info.error or "") for run in runs) == [
        ("failed", "ZeroDivisionError: broken"),
        ("finished", ""),
        ("stopped", "pruned"),
        ("stopped", "pruned"),
    ]
    for run in runs:  # each has what was suggested to its own trial
        rate = run.info.hyperparameters["lr"]
        assert run.scalars("optimizer/lr/0").values[0] == pytest.approx(rate)


def test_what_is_asked_of_a_trial_may_fail_and_what_the_user_gave_goes_first(tmp_path):
    class Offline(optuna.trial.Trial):
        @property
        def params(self):
            raise ConnectionError("the storage does not answer")

    def objective(trial):
        asked.append(suggested(trial))
        model = Net()
        train(model, torch.optim.SGD(model.parameters(), lr=trial.suggest_float("lr", 0.01, 0.1)), 1)
        return 0.5

    asked = []
    settings = {"store": tmp_path / "run", "profiler": False, "hyperparameters": {"lr": "mine", "depth": 2}}
    with AutoWatch({**settings, "strict": True}):
        states(objective, EVERYTHING)
    assert tdbg.open_run(tmp_path / "run").info.hyperparameters == {"lr": "mine", "depth": 2}
    assert asked == [{}]
    study = optuna.create_study()
    assert suggested(Offline(study, study.ask()._trial_id)) == {}
    assert suggested() == {}


def test_studies_that_train_nothing_are_no_framework(tmp_path):
    with AutoWatch({"store": tmp_path / "run", "strict": True}) as watch:
        assert states(lambda _trial: 0.5, EVERYTHING) == ["COMPLETE"]
    assert "optuna" not in watch.summary()
