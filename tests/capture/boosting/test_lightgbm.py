"""LightGBM: what is recorded, and that training does not notice."""

from __future__ import annotations

import numpy as np
import pytest

import tdbg_lab as tdbg

lightgbm = pytest.importorskip("lightgbm")

LGB = {
    "objective": "binary",
    "num_threads": 1,
    "verbosity": -1,
    "num_leaves": 7,
    "min_data_in_leaf": 5,
    "deterministic": True,
    "force_col_wise": True,
    "seed": 0,
}
NAMES = ["age", "height", "c", "d", "e", "f"]


@pytest.fixture
def data(table):
    return lightgbm.Dataset(table[0][:200], table[1][:200], feature_name=NAMES, free_raw_data=False)


@pytest.fixture
def trained(tmp_path, table, data, quiet):
    held = lightgbm.Dataset(table[0][200:], table[1][200:], reference=data)
    callback = tdbg.LightGBMCallback(
        tmp_path / "run",
        train=(table[0][:200], table[1][:200]),
        validation=(table[0][200:], table[1][200:]),
        save_every=5,
        **quiet,
    )
    params = {**LGB, "metric": ["binary_logloss", "auc"]}
    booster = lightgbm.train(params, data, 12, [data, held], ["training", "held"], callbacks=[callback])
    return callback, booster


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"boosting": "dart"},
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6},
        {"objective": "regression", "data_sample_strategy": "goss"},
        {"objective": "multiclass", "num_class": 2},
    ],
    ids=lambda params: "-".join(map(str, params.values())) or "default",
)
def test_training_is_the_same_with_and_without(tmp_path, table, quiet, params):
    models = []
    for callbacks in (
        [],
        [tdbg.LightGBMCallback(tmp_path / "run", train=table, validation=table, save_every=2, **quiet)],
    ):
        data = lightgbm.Dataset(*table)
        models.append(lightgbm.train({**LGB, **params}, data, 9, callbacks=callbacks))
    assert models[0].model_to_string() == models[1].model_to_string()


def test_metrics_of_every_round_are_kept_by_mode(trained):
    run = trained[0].run
    assert run.status == "finished"
    train, held = run.scalars("training-binary_logloss"), run.scalars("held-binary_logloss", mode="eval")
    assert train.steps.tolist() == held.steps.tolist() == list(range(12))
    assert train.values[-1] < train.values[0]
    assert [key.kind for key in run.tensors(regex="^held-auc$")] == ["scalar"]
    assert [key.kind for key in run.tensors(regex="^held-binary_logloss$")] == ["loss"]


def test_training_loss_is_kept_when_no_set_is_the_training_data(tmp_path, data, quiet):
    callback = tdbg.LightGBMCallback(tmp_path / "run", save_every=3, **quiet)
    lightgbm.train(LGB, data, 7, callbacks=[callback])
    assert callback.run.scalars("training-binary_logloss").steps.tolist() == [0, 3, 6]


def test_predictions_importance_and_shap_are_those_of_the_model_at_that_round(trained, table):
    run, booster = trained[0].run, trained[1]
    for step in (0, 5, 10):
        upto = {"num_iteration": step + 1}
        expected = booster.predict(table[0][200:], **upto)
        np.testing.assert_allclose(run.tensor("predictions").value(step, mode="eval"), expected)
        np.testing.assert_array_equal(run.tensor("predictions").labels(step, mode="eval"), table[1][200:])
        np.testing.assert_array_equal(run.tensor("predicted_labels").value(step, mode="eval"), expected > 0.5)
        for kind, name in (("split", "weight"), ("gain", "total_gain")):
            scores = booster.feature_importance(kind, iteration=step + 1)
            found = run.tensor(f"feature_importance/{name}").value(step)
            np.testing.assert_allclose(found, scores / scores.sum(), rtol=1e-5)
        shap = booster.predict(table[0][:128], pred_contrib=True, **upto)
        found = [run.tensor(f"full_shap/{name}").value(step) for name in (*NAMES, "bias")]
        np.testing.assert_allclose(np.stack(found, axis=1), shap, atol=1e-9)
    assert run.info.capture["features"] == NAMES


def test_cover_is_summed_over_all_trees(trained):
    run, booster = trained[0].run, trained[1]
    frame = booster.trees_to_dataframe()
    inner = frame[(frame.tree_index <= 10) & frame.split_feature.notna()]
    cover = inner.groupby("split_feature").weight.sum().reindex(NAMES).fillna(0.0).to_numpy()
    found = run.tensor("feature_importance/total_cover").value(10)
    np.testing.assert_allclose(found, cover / cover.sum(), rtol=1e-4)


def test_trees_are_numbers_that_predict_what_the_model_predicts(trained, table):
    run, booster = trained[0].run, trained[1]
    tree = {
        name: run.tensor(f"trees/{name}").value(5)
        for name in ("Feature", "Split", "Yes", "No", "Leaf", "depth", "leaves")
    }
    assert tree["leaves"].tolist() == [7]
    margins = []
    for row in table[0][:20]:
        node = 0
        while tree["Feature"][node] >= 0:
            at_most = row[tree["Feature"][node]] <= tree["Split"][node]
            node = tree["Yes"][node] if at_most else tree["No"][node]
        margins.append(tree["Leaf"][node])
    expected = booster.predict(table[0][:20], raw_score=True, start_iteration=5, num_iteration=1)
    np.testing.assert_allclose(margins, expected)


def test_stop_request_ends_the_training_and_keeps_the_model(tmp_path, data, quiet):
    callback = tdbg.LightGBMCallback(tmp_path / "run", **quiet)

    def asks(env):
        if env.iteration == 3:
            callback.run.request_stop("enough")
            callback.handle._engine.control._next_s = 0.0

    asks.before_iteration = True
    booster = lightgbm.train(LGB, data, 500, callbacks=[asks, callback])
    assert booster.current_iteration() == booster.best_iteration == 4
    assert (callback.run.status, callback.run.info.error) == ("stopped", "enough")


def test_early_stopping_of_the_library_ends_the_run(tmp_path, table, data, quiet):
    held = lightgbm.Dataset(table[0][200:], table[1][200:], reference=data)
    callback = tdbg.LightGBMCallback(tmp_path / "run", **quiet)
    booster = lightgbm.train(
        {**LGB, "learning_rate": 1.0},
        data,
        300,
        [held],
        callbacks=[callback, lightgbm.early_stopping(3, verbose=False)],
    )
    run = callback.run
    assert run.status == "finished"
    assert run.last_step == booster.best_iteration - 1 + 3 < 299


def test_training_that_raises_leaves_a_failed_run(tmp_path, data, quiet):
    callback = tdbg.LightGBMCallback(tmp_path / "run", **quiet)

    def breaks(env):
        if env.iteration == 2:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError):
        lightgbm.train(LGB, data, 5, callbacks=[callback, breaks])
    assert callback.run.status == "failed"


@pytest.mark.parametrize("estimator", ["LGBMClassifier", "LGBMRegressor", "LGBMRanker"])
def test_estimators_of_scikit_learn_record(tmp_path, table, quiet, estimator):
    features, labels = table
    callback = tdbg.LightGBMCallback(tmp_path / "run", train=(features, labels), save_every=2, **quiet)
    quiet_parameters = {name: LGB[name] for name in ("num_leaves", "verbosity")}
    model = getattr(lightgbm, estimator)(n_estimators=5, n_jobs=1, **quiet_parameters)
    more = {"group": [10] * 30} if estimator == "LGBMRanker" else {}
    model.fit(
        features,
        labels,
        eval_X=features,
        eval_y=labels,
        callbacks=[callback],
        **({**more, "eval_group": [more["group"]]} if more else {}),
    )
    run = callback.run
    assert run.last_step == 4
    assert run.tensor("predictions").value(4).shape == (300,)
    assert run.info.framework == "lightgbm"


def test_cross_validation_records_metrics(tmp_path, data, quiet):
    callback = tdbg.LightGBMCallback(tmp_path / "run", **quiet)
    result = lightgbm.cv(LGB, data, 4, nfold=3, callbacks=[callback])
    run = callback.run
    assert run.status == "finished"
    np.testing.assert_allclose(
        run.scalars("valid-binary_logloss", mode="eval").values, result["valid binary_logloss-mean"]
    )


def test_metrics_of_an_older_cross_validation_have_the_names_of_a_newer_one(tmp_path, quiet):
    callback = tdbg.LightGBMCallback(tmp_path / "run", **quiet)
    told = [("cv_agg", "train auc", 0.9, True, 0.01), ("cv_agg", "valid binary_logloss", 0.5, False, 0.01)]
    found = callback.told_metrics(None, told)
    assert [(one.name, str(one.mode), one.value) for one in found] == [
        ("train-auc", "train", 0.9),
        ("valid-binary_logloss", "eval", 0.5),
    ]


def test_data_set_of_the_library_is_refused_with_what_to_give_instead(data):
    with pytest.raises(tdbg.TdbgError, match=r"train is a lightgbm.Dataset, which cannot be predicted; give"):
        tdbg.LightGBMCallback(train=data)


def test_labels_of_text_become_numbers(tmp_path, table, quiet):
    features, labels = table
    words = np.where(labels == 1, "yes", "no")
    callback = tdbg.LightGBMCallback(tmp_path / "run", train=(features, words), **quiet)
    lightgbm.LGBMClassifier(n_estimators=1, n_jobs=1, verbosity=-1).fit(features, words, callbacks=[callback])
    np.testing.assert_array_equal(callback.run.tensor("labels").value(0), labels)
