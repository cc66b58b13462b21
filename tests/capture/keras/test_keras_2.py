"""Models of Keras 2, which are not captured, and what is said of them; real ones where there is tf_keras."""

from __future__ import annotations

import importlib.util
import sys
import types

import pytest

import tdbg_lab as tdbg
from tdbg_lab.capture.auto import AutoWatch
from tdbg_lab.errors import CaptureError


class Sequential:
    """What of theirs matters here: where its class is from, and a ``fit``."""

    __module__ = "tf_keras.src.engine.sequential"

    def fit(self, callbacks=()):
        for one in callbacks:
            one.set_model(self)
        return "fitted"


@pytest.fixture
def model(monkeypatch):
    """One that was not compiled."""
    if importlib.util.find_spec("tf_keras"):
        import tf_keras

        one = tf_keras.Sequential([tf_keras.layers.Input((2,)), tf_keras.layers.Dense(1)])
        one.compile(loss="mse")
        return one
    module = types.ModuleType("tf_keras")
    module.Model = Sequential
    monkeypatch.setitem(sys.modules, "tf_keras", module)
    return Sequential()


def fit(model, **more):
    if isinstance(model, Sequential):
        return model.fit(**more)
    import numpy as np

    return model.fit(np.ones((4, 2)), np.ones(4), verbose=0, **more)


def test_attach_says_what_it_expects(model, tmp_path):
    with pytest.raises(
        CaptureError, match=r"model is of Keras 2 .*expected a model of Keras 3: import keras"
    ):
        tdbg.attach(model, store=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_callback_says_what_it_expects(model, tmp_path):
    with pytest.raises(CaptureError, match=r"given to a model of Keras 2 .*expected a model of Keras 3"):
        fit(model, callbacks=[tdbg.KerasCallback(store=tmp_path / "run")])


def test_a_watched_program_is_told_why_nothing_was_seen(model, tmp_path):
    before = type(model).fit
    with AutoWatch({"store": tmp_path / "run", "strict": True}) as watch:
        assert fit(model)
    assert "what trains is of Keras 2 (tf_keras), which is not captured" in watch.summary()
    assert type(model).fit is before
