"""Models of Keras 2, which are not captured, and what is said of them; real ones where there is tf_keras."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import importlib.util, sys, types
import tdbg_lab as tdbg
from tdbg_lab.capture.auto import AutoWatch
from tdbg_lab.errors import CaptureError

class Sequential:
    '''What of theirs matters here: where its class is from, and a fit that tells callbacks of the model.'''
    __module__ = "tf_keras.src.engine.sequential"

    def fit(self, callbacks=()):
        for one in callbacks:
            one.set_model(self)

if importlib.util.find_spec("tf_keras"):
    import numpy as np, tf_keras
    model = tf_keras.Sequential([tf_keras.layers.Input((2,)), tf_keras.layers.Dense(1)])
    model.compile(loss="mse")
    data = {"x": np.ones((4, 2)), "y": np.ones(4), "verbose": 0}
else:
    sys.modules["tf_keras"] = types.ModuleType("tf_keras")
    sys.modules["tf_keras"].Model = Sequential
    model, data = Sequential(), {}

what, store = sys.argv[1:]
try:
    if what == "attach":
        tdbg.attach(model, store=store)
    elif what == "callback":
        model.fit(**data, callbacks=[tdbg.KerasCallback(store=store)])
    else:
        before = type(model).fit
        with AutoWatch({"store": store, "strict": True}) as watch:
            model.fit(**data)
        assert type(model).fit is before
        print(watch.summary())
except CaptureError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("what", "begins"),
    [
        ("attach", "model is"),
        ("callback", "The callback was given to a model"),
        ("run", "nothing to attach to: what trains is"),
    ],
)
def test_a_model_is_told_as_that(tmp_path, what, begins):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, what, tmp_path / "run"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().splitlines()[-1] == (
        f"{begins} of Keras 2 (tf_keras), which is not captured; expected a model of Keras 3: import keras, "
        "and leave TF_USE_LEGACY_KERAS unset for tf.keras."
    )
    assert not (tmp_path / "run").exists()
