from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Mode
from tdbg_lab.store import create_run
from tdbg_lab.views.boosting import write_xgboost_report
from tdbg_lab.views.boosting.samples import Sample, confusion, roc, samples_of, scores_of

if TYPE_CHECKING:
    from pathlib import Path

xgboost = pytest.importorskip("xgboost")

_PARAMS = {
    "regression": {"objective": "reg:squarederror"},
    "binary": {"objective": "binary:logistic"},
    "multiclass": {"objective": "multi:softprob", "num_class": 3},
}


def boost(path: Path, task: str) -> tdbg.Run:
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 4))
    value = x[:, 0] + 0.1 * random.normal(size=200)
    y = {"regression": value, "binary": value > 0, "multiclass": np.digitize(value, (-0.5, 0.5))}[task]
    train, held = xgboost.DMatrix(x[:120], y[:120]), xgboost.DMatrix(x[120:], y[120:])
    callback = tdbg.XGBoostCallback(path, train=train, validation=held, save_every=5, profiler=False)
    evals = [(train, "train"), (held, "test")]
    params = {"nthread": 1, **_PARAMS[task]}
    xgboost.train(params, train, 11, evals=evals, callbacks=[callback], verbose_eval=False)
    return tdbg.open_run(path)


@pytest.mark.parametrize(
    ("task", "there", "not_there"),
    [
        ("regression", ["Residuals", "Absolute error by label"], ["Confusion matrix", "Receiver"]),
        ("binary", ["Confusion matrix", "Precision, recall, F1", "Receiver operating"], ["Residuals"]),
        ("multiclass", ["Confusion matrix", "Accuracy of each class"], ["Residuals", "Receiver"]),
    ],
)
def test_sections_follow_the_task(tmp_path: Path, task: str, there: list[str], not_there: list[str]) -> None:
    run = boost(tmp_path / "run", task)
    assert samples_of(run)[-1].task == task
    page = write_xgboost_report(run, tmp_path / "report.html").read_text("utf-8")
    for heading in ["Labels", "Importance of features: gain", "Loss: ", *there]:
        assert f"<h2>{heading}" in page
    for heading in not_there:
        assert f"<h2>{heading}" not in page
    assert "<script src" not in page


def test_scores_agree_with_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(0)
    labels, classes = random.integers(0, 4, 300), random.integers(0, 4, 300)
    sample = Sample(0, Mode.EVAL, labels.astype(float), np.zeros((300, 4)), classes)
    assert np.array_equal(confusion(sample), metrics.confusion_matrix(labels, classes))
    for name, *scores in scores_of(confusion(sample)):
        wanted = metrics.precision_recall_fscore_support(labels, classes, average=name)[:3]
        assert scores == pytest.approx(wanted)


def test_area_under_the_curve_agrees_with_scikit_learn_with_ties() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 300).astype(float)
    scores = np.round(0.3 * labels + random.random(300), 1)
    found = roc(Sample(0, Mode.EVAL, labels, scores, labels.astype(np.int64)))
    assert found is not None
    assert found[2] == pytest.approx(metrics.roc_auc_score(labels, scores))


def test_run_of_something_else_is_told(tmp_path: Path) -> None:
    create_run(tmp_path / "run")
    with pytest.raises(ConfigError, match="nothing of boosted trees"):
        write_xgboost_report(tmp_path / "run", tmp_path / "report.html")
