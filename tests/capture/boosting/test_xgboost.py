"""XGBoost: what is recorded, and that training does not notice."""

from __future__ import annotations

import copy
import json
import multiprocessing
import pickle

import numpy as np
import pytest

import tdbg_lab as tdbg
from tdbg_lab.capture.boosting.model import IMPORTANCE_KINDS

xgboost = pytest.importorskip("xgboost")

XGB = {"objective": "binary:logistic", "nthread": 1, "max_depth": 3, "seed": 0}
NAMES = ["age", "height", "c", "d", "e", "f"]


@pytest.fixture
def matrix(table):
    return xgboost.DMatrix(table[0][:200], table[1][:200], feature_names=NAMES)


@pytest.fixture
def trained(tmp_path, table, matrix, quiet):
    held = xgboost.DMatrix(table[0][200:], table[1][200:], feature_names=NAMES)
    params = {**XGB, "eval_metric": ["logloss", "auc"]}
    callback = tdbg.XGBoostCallback(
        tmp_path / "run", train=matrix, validation=(table[0][200:], table[1][200:]), save_every=5, **quiet
    )
    evals = [(matrix, "train"), (held, "test")]
    booster = xgboost.train(params, matrix, 12, evals=evals, callbacks=[callback], verbose_eval=False)
    return callback, booster


def dump(booster):
    return booster.get_dump(with_stats=True, dump_format="json")


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"booster": "dart", "rate_drop": 0.3},
        {"booster": "gblinear"},
        {"objective": "reg:squarederror", "subsample": 0.5, "colsample_bytree": 0.5},
        {"objective": "multi:softprob", "num_class": 2, "num_parallel_tree": 2},
        {"tree_method": "exact", "objective": "count:poisson"},
        {"tree_method": "approx", "objective": "reg:absoluteerror"},
    ],
    ids=lambda params: "-".join(map(str, params.values())) or "default",
)
def test_training_is_the_same_with_and_without(tmp_path, table, quiet, params):
    models = []
    for callbacks in (
        [],
        [tdbg.XGBoostCallback(tmp_path / "run", train=table, validation=table, save_every=2, **quiet)],
    ):
        data = xgboost.DMatrix(*table)
        models.append(xgboost.train({**XGB, **params}, data, 9, callbacks=callbacks))
    assert models[0].save_raw("json") == models[1].save_raw("json")
    assert dump(models[0]) == dump(models[1])


def test_metrics_of_every_round_are_kept_by_mode(trained):
    run = trained[0].run
    assert run.status == "finished"
    train, test = run.scalars("train-logloss"), run.scalars("test-logloss", mode="eval")
    assert train.steps.tolist() == test.steps.tolist() == list(range(12))
    assert train.values[-1] < train.values[0]
    assert [key.kind for key in run.tensors(regex="^test-auc$")] == ["scalar"]
    assert [key.kind for key in run.tensors(regex="^test-logloss$")] == ["loss"]
    assert set(run.tensor_names(collection="losses")) == {"train-logloss", "test-logloss"}


def test_training_loss_is_measured_when_no_set_is_the_training_data(tmp_path, table, matrix, quiet):
    callback = tdbg.XGBoostCallback(tmp_path / "run", train=matrix, save_every=3, **quiet)
    booster = xgboost.train(XGB, matrix, 7, callbacks=[callback])
    found = callback.run.scalars("train-logloss")
    assert found.steps.tolist() == [0, 3, 6]
    expected = float(booster.eval_set([(matrix, "x")]).rpartition(":")[2])
    assert found.values[-1] == pytest.approx(expected, abs=1e-5)


def test_how_often_to_save_can_be_chosen(tmp_path, matrix, quiet):
    callback = tdbg.XGBoostCallback(tmp_path / "run", train=matrix, save_every="auto", **quiet)
    seen = xgboost.train(XGB, matrix, 20, callbacks=[callback])
    assert dump(seen) == dump(xgboost.train(XGB, matrix, 20))
    run = callback.run
    assert run.steps(tensor="predictions").tolist()[:5] == [0, 2, 4, 6, 8]
    assert run.scalars("tdbg/save_every").steps.tolist()[0] == 8


def test_predictions_and_labels_are_those_of_the_model_at_that_round(trained, table):
    run, booster = trained[0].run, trained[1]
    matrix = xgboost.DMatrix(table[0][200:], feature_names=NAMES)
    for step in (0, 5, 10):
        expected = booster.predict(matrix, iteration_range=(0, step + 1))
        value = run.tensor("predictions").value(step, mode="eval")
        np.testing.assert_allclose(value, expected, rtol=1e-5)
        classes = run.tensor("predicted_labels").value(step, mode="eval")
        np.testing.assert_array_equal(classes, expected > 0.5)
        np.testing.assert_array_equal(run.tensor("predictions").labels(step, mode="eval"), table[1][200:])
        np.testing.assert_array_equal(run.tensor("labels").value(step, mode="eval"), table[1][200:])
    assert run.tensor("predictions").value(0).shape == (200,)


def test_importance_has_one_share_per_feature_in_five_kinds(trained):
    run, booster = trained[0].run, trained[1]
    assert run.info.capture["features"] == NAMES
    for kind in IMPORTANCE_KINDS:
        scores = booster[:11].get_score(importance_type=kind)
        expected = np.array([scores.get(name, 0.0) for name in NAMES])
        value = run.tensor(f"feature_importance/{kind}").value(10)
        np.testing.assert_allclose(value, expected / expected.sum(), rtol=1e-6)
        single = run.scalars(f"feature_importance/{kind}/height")
        assert single.values[-1] == pytest.approx(value[1])
        assert single.steps.tolist() == [0, 5, 10]


def test_shap_grows_to_the_same_values_as_computed_at_once(trained, matrix):
    run, booster = trained[0].run, trained[1]
    expected = booster[:11].predict(matrix.slice(np.arange(128)), pred_contribs=True)
    found = [run.tensor(f"full_shap/{name}").value(10) for name in (*NAMES, "bias")]
    np.testing.assert_allclose(np.stack(found, axis=1), expected, atol=1e-5)
    np.testing.assert_allclose(run.tensor("average_shap").value(10), expected.mean(axis=0), atol=1e-5)
    assert run.scalars("average_shap/age").values[-1] == pytest.approx(expected[:, 0].mean(), abs=1e-5)


@pytest.mark.parametrize(
    "params", [{"booster": "dart", "rate_drop": 0.5}, {"num_class": 3}], ids=["dart", "multi"]
)
def test_shap_of_other_boosters(tmp_path, table, quiet, params):
    features, labels = table
    labels = labels + (features[:, 3] > 0.5)
    objective = "multi:softprob" if "num_class" in params else "reg:squarederror"
    callback = tdbg.XGBoostCallback(tmp_path / "run", train=(features, labels), save_every=3, **quiet)
    params = {**XGB, **params, "objective": objective}
    booster = xgboost.train(params, xgboost.DMatrix(features, labels), 7, callbacks=[callback])
    rows = xgboost.DMatrix(features[:128])
    expected = np.moveaxis(booster.predict(rows, pred_contribs=True), -1, 0)
    found = np.stack(
        [callback.run.tensor(f"full_shap/{n}").value(6) for n in [*(f"f{i}" for i in range(6)), "bias"]]
    )
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_trees_are_numbers_that_predict_what_the_model_predicts(trained, table):
    run, booster = trained[0].run, trained[1]
    tree = {
        name: run.tensor(f"trees/{name}").value(5)
        for name in (
            "Feature",
            "Split",
            "Yes",
            "No",
            "Missing",
            "Leaf",
            "Node",
            "Gain",
            "Cover",
            "depth",
            "leaves",
        )
    }
    frame = booster[5:6].trees_to_dataframe()
    assert tree["depth"].tolist() == [3]
    assert tree["leaves"].tolist() == [int((frame.Feature == "Leaf").sum())]
    assert len(tree["Node"]) == len(frame)
    np.testing.assert_allclose(sorted(tree["Cover"]), sorted(frame.Cover), rtol=1e-5)
    margins = []
    for row in table[0][:20].astype(np.float32):
        node = 0
        while tree["Feature"][node] >= 0:
            below = row[tree["Feature"][node]] < tree["Split"][node]
            node = tree["Yes"][node] if below else tree["No"][node]
        margins.append(tree["Leaf"][node])
    one, two = (
        booster.predict(
            xgboost.DMatrix(table[0][:20], feature_names=NAMES), output_margin=True, iteration_range=(0, n)
        )
        for n in (5, 6)
    )
    np.testing.assert_allclose(margins, two - one, atol=1e-5)


def test_hyperparameters_of_the_objective_are_known_too(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 3))
    train = xgboost.DMatrix(x, (x[:, 0] > 0).astype(int))
    callback = tdbg.XGBoostCallback(tmp_path / "run", train=train, profiler=False)
    settings = {"objective": "binary:logistic", "scale_pos_weight": 4, "nthread": 1}
    xgboost.train(settings, train, 2, callbacks=[callback])
    assert callback.run.info.hyperparameters["scale_pos_weight"] == 4


def test_hyperparameters_hold_what_was_set_and_what_was_not(trained):
    info = trained[0].run.info
    assert info.framework == "xgboost"
    assert info.framework_version == xgboost.__version__
    assert info.hyperparameters["max_depth"] == 3
    assert info.hyperparameters["objective"] == "binary:logistic"
    assert info.hyperparameters["eta"] == pytest.approx(0.3)
    assert trained[0].run.scalars("hyperparameters/max_depth").values.tolist() == [3.0]


def test_stop_request_ends_the_training_and_keeps_the_model(tmp_path, matrix, quiet):
    callback = tdbg.XGBoostCallback(tmp_path / "run", **quiet)

    class Asks(xgboost.callback.TrainingCallback):
        def before_iteration(self, model, epoch, evals_log):
            if epoch == 3:
                callback.run.request_stop("enough")
                callback.handle._engine.control._next_s = 0.0
            return False

    booster = xgboost.train(XGB, matrix, 500, callbacks=[Asks(), callback])
    assert booster.num_boosted_rounds() == 4
    run = callback.run
    assert (run.status, run.info.error) == ("stopped", "enough")
    assert run.info.last_step == 3


def test_early_stopping_of_the_library_ends_the_run(tmp_path, table, matrix, quiet):
    held = xgboost.DMatrix(table[0][200:], table[1][200:], feature_names=NAMES)
    callback = tdbg.XGBoostCallback(tmp_path / "run", **quiet)
    booster = xgboost.train(
        {**XGB, "eta": 1.0},
        matrix,
        300,
        evals=[(held, "test")],
        callbacks=[callback],
        early_stopping_rounds=3,
        verbose_eval=False,
    )
    run = callback.run
    assert run.status == "finished"
    assert run.last_step == booster.num_boosted_rounds() - 1 < 299


def test_training_that_raises_leaves_a_failed_run(tmp_path, matrix, quiet):
    callback = tdbg.XGBoostCallback(tmp_path / "run", **quiet)

    def objective(_predictions, _data):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError):
        xgboost.train(XGB, matrix, 5, obj=objective, callbacks=[callback])
    assert callback.run.status == "failed"
    assert "did not reach its end" in callback.run.info.error


@pytest.mark.parametrize("estimator", ["XGBClassifier", "XGBRegressor", "XGBRanker"])
def test_estimators_of_scikit_learn_record(tmp_path, table, quiet, estimator):
    features, labels = table
    callback = tdbg.XGBoostCallback(tmp_path / "run", train=(features, labels), save_every=2, **quiet)
    model = getattr(xgboost, estimator)(n_estimators=5, max_depth=2, n_jobs=1, callbacks=[callback])
    more = {"qid": np.repeat(np.arange(30), 10)} if estimator == "XGBRanker" else {}
    model.fit(
        features,
        labels,
        eval_set=[(features, labels)],
        verbose=False,
        **({**more, "eval_qid": [more["qid"]]} if more else {}),
    )
    run = callback.run
    assert run.steps(mode="eval").tolist() == list(range(5))
    assert run.tensor("predictions").value(4).shape == (300,)
    assert [n for n in run.tensor_names(mode="eval") if n.startswith("validation_0-")]


def test_copies_of_an_estimator_record_runs_of_their_own(tmp_path, table, quiet):
    model_selection = pytest.importorskip("sklearn.model_selection")
    callback = tdbg.XGBoostCallback(tmp_path / "run", train=table, **quiet)
    model = xgboost.XGBClassifier(n_estimators=2, n_jobs=1, callbacks=[callback])
    model_selection.cross_val_score(model, *table, cv=3)
    assert len(tdbg.list_runs(tmp_path)) == 3
    assert callback.handle is None


def test_a_callback_used_again_makes_another_run(tmp_path, matrix, quiet):
    callback = tdbg.XGBoostCallback(tmp_path / "run", **quiet)
    paths = []
    for _ in range(2):
        xgboost.train(XGB, matrix, 2, callbacks=[callback])
        paths.append(callback.run_path.name)
    assert paths == ["run", "run-2"]
    twin = pickle.loads(pickle.dumps(callback))
    assert twin.handle is None
    assert copy.deepcopy(callback).handle is None


def test_cross_validation_records_means_and_deviations(tmp_path, matrix, quiet):
    callback = tdbg.XGBoostCallback(tmp_path / "run", **quiet)
    result = xgboost.cv(XGB, matrix, 4, nfold=3, callbacks=[callback])
    run = callback.run
    assert run.status == "finished"
    np.testing.assert_allclose(run.scalars("test-logloss", mode="eval").values, result["test-logloss-mean"])
    np.testing.assert_allclose(
        run.scalars("test-logloss-std", mode="eval").values, result["test-logloss-std"]
    )


def test_collections_choose_what_is_computed_and_when(tmp_path, table, matrix, quiet):
    callback = tdbg.XGBoostCallback(
        tmp_path / "run",
        train=matrix,
        collections={
            "full_shap": False,
            "average_shap": False,
            "trees": {"save": 1},
            "feature_importance": {"include": ["gain$"]},
        },
        **quiet,
    )
    xgboost.train(XGB, matrix, 4, callbacks=[callback])
    run = callback.run
    assert run.tensor_names(regex="shap") == []
    assert run.tensor_names(regex="^feature_importance/") == [
        "feature_importance/gain",
        "feature_importance/total_gain",
    ]
    assert run.steps(tensor="trees/depth").tolist() == [0, 1, 2, 3]


def test_missing_and_categorical_features_are_recorded(tmp_path, quiet):
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(1)
    frame = pandas.DataFrame(
        {"x": random.normal(size=120), "g": pandas.Categorical(random.choice(list("abc"), 120))}
    )
    frame.loc[::7, "x"] = np.nan
    labels = ((frame.x.fillna(0) > 0) ^ (frame.g == "a")).astype(int)
    callback = tdbg.XGBoostCallback(tmp_path / "run", train=(frame, labels), save_every=1, **quiet)
    model = xgboost.XGBClassifier(n_estimators=3, n_jobs=1, enable_categorical=True, callbacks=[callback])
    model.fit(frame, labels)
    run = callback.run
    np.testing.assert_allclose(
        run.tensor("predictions").value(2), model.predict_proba(frame)[:, 1], rtol=1e-5
    )
    assert run.info.capture["features"] == ["x", "g"]


def test_wide_data_keep_vectors_instead_of_a_row_per_feature(tmp_path, quiet):
    random = np.random.default_rng(2)
    features, labels = random.normal(size=(60, 400)), random.integers(0, 2, 60)
    callback = tdbg.XGBoostCallback(tmp_path / "run", train=(features, labels), **quiet)
    xgboost.train(XGB, xgboost.DMatrix(features, labels), 2, callbacks=[callback])
    run = callback.run
    assert run.tensor("feature_importance/gain").value(0).shape == (400,)
    assert run.tensor("full_shap").value(0).shape == (60, 401)
    assert run.tensor_names(regex="f17$") == []


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("train.csv", "train is str; expected a table of rows and features"),
        ((np.ones((4, 6)), [1, 2]), "train has 4 rows but 2 labels"),
        (np.ones(6), "train is an array of 1 dimensions"),
    ],
)
def test_data_of_a_wrong_kind_are_refused_at_once(data, sentence):
    with pytest.raises(tdbg.TdbgError, match=sentence):
        tdbg.XGBoostCallback(train=data)


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ({"sample_rows": 0}, "sample_rows is 0; expected a number of rows"),
        ({"collections": ["tree"]}, "which is not a known collection; expected one of metrics, losses"),
        ({"save_every": "x"}, "save_every"),
        ({"if_exists": "overwrite"}, "if_exists is 'overwrite'"),
    ],
)
def test_wrong_settings_are_refused_at_once(argument, sentence):
    with pytest.raises(tdbg.TdbgError, match=sentence):
        tdbg.XGBoostCallback(**argument)


def test_data_that_do_not_fit_the_model_cost_only_the_predictions(tmp_path, matrix, caplog):
    callback = tdbg.XGBoostCallback(tmp_path / "run", train=(np.ones((9, 4)), np.ones(9)), profiler=False)
    xgboost.train(XGB, matrix, 3, evals=[(matrix, "train")], callbacks=[callback], verbose_eval=False)
    assert "train has 4 features, the model is trained on 6; give data with the same columns" in caplog.text
    assert caplog.text.count("train has 4 features") == 1
    run = callback.run
    assert run.scalars("train-logloss").steps.tolist() == [0, 1, 2]
    assert [problem.probe for problem in callback.handle.problems] == ["train data"]


def test_directory_that_cannot_be_made_is_said_and_training_goes_on(tmp_path, matrix, caplog):
    (tmp_path / "file").write_text("")
    callback = tdbg.XGBoostCallback(tmp_path / "file" / "run", profiler=False)
    booster = xgboost.train(XGB, matrix, 2, callbacks=[callback])
    assert booster.num_boosted_rounds() == 2
    assert "this training is not recorded. Cause: Cannot make run directory run" in caplog.text
    with pytest.raises(tdbg.TdbgError, match="has seen no training yet"):
        _ = callback.run


def test_quantile_matrix_is_refused_with_what_to_give_instead(tmp_path, table, caplog):
    quantile = xgboost.QuantileDMatrix(*table)
    callback = tdbg.XGBoostCallback(tmp_path / "run", train=quantile, profiler=False)
    xgboost.train(XGB, quantile, 2, callbacks=[callback])
    assert "train is a QuantileDMatrix, whose rows cannot be picked; give (X, y) or a DMatrix" in caplog.text


def test_more_rows_than_the_sample_are_spread_evenly(tmp_path, matrix, table, quiet):
    callback = tdbg.XGBoostCallback(tmp_path / "run", train=matrix, sample_rows=20, shap_rows=7, **quiet)
    xgboost.train(XGB, matrix, 1, callbacks=[callback])
    np.testing.assert_array_equal(callback.run.tensor("labels").value(0), table[1][:200:10])
    assert callback.run.tensor("full_shap/age").value(0).shape == (7,)


def _worker(rank: int, store: str, address: dict, features, labels) -> None:
    from xgboost import collective

    with collective.CommunicatorContext(**address):
        part = slice(rank, None, 2)
        data = xgboost.DMatrix(features[part], labels[part])
        callback = tdbg.XGBoostCallback(
            store, train=(features[part], labels[part]), save_every=2, profiler=False
        )
        xgboost.train(XGB, data, 4, evals=[(data, "train")], callbacks=[callback], verbose_eval=False)


def test_workers_write_one_run_with_a_rank_each(tmp_path, table):
    from xgboost.tracker import RabitTracker

    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "old").write_text("")  # the directory is taken: the workers must agree on another
    tracker = RabitTracker(host_ip="127.0.0.1", n_workers=2)
    tracker.start()
    address = tracker.worker_args()
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_worker, args=(rank, str(tmp_path / "run"), address, *table))
        for rank in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(240)
    codes = [worker.exitcode for worker in workers]
    for worker in workers:
        worker.kill()
    assert codes == [0, 0]
    run = tdbg.open_run(tmp_path / "run-2")
    assert run.ranks() == [0, 1]
    assert run.info.world_size == 2
    assert run.tensor("predictions").value(2).shape == (300,)
    assert run.scalars("train-logloss").steps.tolist() == [0, 1, 2, 3]
    assert json.loads((run.path / "run.json").read_text())["status"] == "finished"


@pytest.mark.parametrize(("params", "loss"), [({}, False), ({"eval_metric": "rmse"}, True)])
def test_metric_that_is_added_to_a_function_as_objective_is_no_loss(tmp_path, matrix, quiet, params, loss):
    def of_zero(margins, data):
        return margins, np.ones_like(margins)

    callback = tdbg.XGBoostCallback(tmp_path / "run", **quiet)
    xgboost.train(params, matrix, 3, obj=of_zero, callbacks=[callback], evals=[(matrix, "train")])
    assert bool(callback.run.tensors(kind="loss")) is loss
    assert len(callback.run.scalars("train-rmse").values) == 3
