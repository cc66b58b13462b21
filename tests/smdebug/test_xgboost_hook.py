"""The XGBoost hook: names, schedule, values."""

from __future__ import annotations

import json

import numpy as np
import pytest

xgboost = pytest.importorskip("xgboost")

import tdbg_lab.smdebug.xgboost as smd  # noqa: E402
from tdbg_lab.run import open_run  # noqa: E402
from tdbg_lab.smdebug.core.singleton_utils import del_hook  # noqa: E402


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    y = (x[:, 0] + 0.1 * rng.normal(size=60) > 0).astype(float)
    return xgboost.DMatrix(x, y, feature_names=["a", "b", "c"])


@pytest.fixture(autouse=True)
def _no_hook_left():
    yield
    del_hook()


PARAMS = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1, "eval_metric": ["logloss", "auc"]}


def boost(hook, data, rounds=12):
    return xgboost.train(PARAMS, data, rounds, evals=[(data, "train")], callbacks=[hook], verbose_eval=False)


def test_hook_saves_metrics_of_every_tenth_round_by_default(tmp_path, data):
    boost(smd.Hook(out_dir=tmp_path / "run", train_data=data), data)
    trial = smd.create_trial(tmp_path / "run")
    assert trial.steps() == [0, 10]
    assert trial.tensor_names() == ["train-auc", "train-logloss"]
    assert trial.tensor_names(collection="losses") == ["train-logloss"]
    assert open_run(tmp_path / "run").info.framework == "xgboost"


def test_all_collections_have_the_documented_names(tmp_path, data):
    hook = smd.Hook(
        tmp_path / "run",
        save_config=smd.SaveConfig(save_interval=2),
        save_all=True,
        hyperparameters=PARAMS,
        train_data=data,
    )
    model = boost(hook, data, 3)
    trial = smd.create_trial(tmp_path / "run")
    assert trial.tensor_names(collection="hyperparameters") == [
        "hyperparameters/max_depth",
        "hyperparameters/nthread",
    ]
    assert "feature_importance/gain/a" in trial.tensor_names(collection="feature_importance")
    assert trial.tensor_names(collection="average_shap") == [f"average_shap/{name}" for name in "abc"]
    assert trial.tensor_names(collection="full_shap") == [f"full_shap/{name}" for name in "abc"]
    assert "trees/Gain" in trial.tensor_names(collection="trees")
    np.testing.assert_array_equal(trial.tensor("labels").value(2), data.get_label())
    np.testing.assert_array_equal(trial.tensor("predictions").value(2), model.predict(data))
    shap = model.predict(data, pred_contribs=True)
    np.testing.assert_array_equal(trial.tensor("full_shap/a").value(2), shap[:, 0])
    assert trial.tensor("average_shap/a").value(2).item() == pytest.approx(np.abs(shap[:, 0]).mean())
    shares = [trial.tensor(f"feature_importance/gain/{name}").value(2).item() for name in "abc"]
    assert sum(shares) == pytest.approx(1)


def test_model_is_the_same_with_a_hook(tmp_path, data):
    plain = xgboost.train(PARAMS, data, 5)
    hooked = boost(smd.Hook(tmp_path / "run", save_all=True, train_data=data), data, 5)
    assert plain.get_dump(with_stats=True) == hooked.get_dump(with_stats=True)


def test_stop_request_ends_boosting(tmp_path, data):
    hook = smd.Hook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=1))

    class Ask(xgboost.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            if epoch == 1:
                open_run(tmp_path / "run").request_stop("enough")
                hook._recording._control._next_s = 0.0
            return False

    model = xgboost.train(
        PARAMS, data, 30, evals=[(data, "train")], callbacks=[hook, Ask()], verbose_eval=False
    )
    assert model.num_boosted_rounds() == 3
    assert open_run(tmp_path / "run").status == "stopped"


def test_json_file_makes_the_hook(tmp_path, data):
    path = tmp_path / "hook.json"
    path.write_text(
        json.dumps(
            {
                "LocalPath": str(tmp_path / "run"),
                "HookParameters": {"save_interval": "1"},
                "CollectionConfigurations": [{"CollectionName": "predictions"}],
            }
        )
    )
    hook = smd.Hook.create_from_json_file(str(path))
    hook.train_data = data
    boost(hook, data, 2)
    assert smd.create_trial(tmp_path / "run").tensor("predictions").steps() == [0, 1]
