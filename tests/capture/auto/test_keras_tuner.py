"""Searches of Keras Tuner: each trial is a run with what it tried."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

from tdbg_lab.run import open_run

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("keras_tuner") is None, reason="this is about Keras Tuner"
)

SEARCH = """
import sys
import keras, keras_tuner, numpy as np
from tdbg_lab.capture.auto import AutoWatch

def build(space):
    layers = [keras.layers.Dense(space.Int("units", 2, 64), activation="relu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.layers.Input((3,)), *layers])
    rate = space.Float("rate", 1e-4, 1e-1, sampling="log")
    model.compile(optimizer=keras.optimizers.SGD(rate), loss="mse")
    return model

x = np.random.default_rng(0).normal(size=(64, 3)).astype("float32")
y = x.sum(axis=1)
store, folder = sys.argv[1:]
with AutoWatch({"store": store, "save_every": 1, "profiler": False, "strict": True}) as watch:
    search = keras_tuner.RandomSearch(build, objective="val_loss", max_trials=3, directory=folder, seed=0)
    search.search(x, y, epochs=1, validation_data=(x, y), verbose=0)
assert not hasattr(keras_tuner.engine.base_tuner.BaseTuner._run_and_update_trial, "__wrapped__")
print(watch.summary())
"""


def test_each_trial_has_what_it_tried(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, tmp_path / "run", tmp_path / "search"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "captured 3 trainings" in done.stdout
    trials = [json.loads(path.read_text()) for path in (tmp_path / "search").rglob("trial.json")]
    tried = [one["hyperparameters"]["values"] for one in trials]
    runs = [open_run(path) for path in sorted(tmp_path.glob("run*"))]
    assert sorted(tried, key=lambda one: one["units"]) == sorted(
        ({name: run.info.hyperparameters[name] for name in ("units", "rate")} for run in runs),
        key=lambda one: one["units"],
    )
    for run in runs:
        assert str(run.status) == "finished"
        units, rate = (run.info.hyperparameters[name] for name in ("units", "rate"))
        assert run.scalars("optimizer/lr/0").values[0] == pytest.approx(rate)
        assert run.stats("dense/bias", "count")["count"].iloc[0] == units
