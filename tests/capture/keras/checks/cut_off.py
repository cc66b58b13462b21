"""Trainings that an exception ends: Keras tells no callback of it."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import keras
import optuna
from optuna_integration import KerasPruningCallback

from checks.training import callback, data, plain
from tdbg_lab.run import open_run

if TYPE_CHECKING:
    from pathlib import Path


class Broken(keras.callbacks.Callback):
    """Fails after the second batch."""

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        if batch == 1:
            raise ZeroDivisionError


def trained(folder: Path, pruner: optuna.pruners.BasePruner, *, broken: bool = False) -> tuple[str, str, str]:
    """How the only trial of a study ended, and its run: nothing of the training is kept."""

    def objective(trial: optuna.Trial) -> float:
        model = plain()
        model.compile("sgd", "mse")
        pruning = KerasPruningCallback(trial, "loss")
        callbacks = [callback(folder), pruning, *([Broken()] if broken else [])]
        model.fit(*data(), batch_size=16, epochs=2, verbose=0, callbacks=callbacks)
        return 0.5

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(pruner=pruner)
    study.optimize(objective, n_trials=1, catch=(ZeroDivisionError,))
    gc.collect()
    run = open_run(folder / "run")
    return study.trials[0].state.name, str(run.status), run.info.error or ""


def check_a_trial_that_its_pruner_ends_is_stopped(folder: Path) -> None:
    pruner = optuna.pruners.ThresholdPruner(upper=-1.0)  # no loss is below
    assert trained(folder, pruner) == ("PRUNED", "stopped", "pruned")


def check_a_training_that_another_callback_ends_has_failed(folder: Path) -> None:
    found = trained(folder, optuna.pruners.NopPruner(), broken=True)
    assert found == ("FAIL", "failed", "CaptureError: the training did not reach its end")


def check_a_trial_that_is_worth_its_time_is_finished(folder: Path) -> None:
    assert trained(folder, optuna.pruners.NopPruner()) == ("COMPLETE", "finished", "")
