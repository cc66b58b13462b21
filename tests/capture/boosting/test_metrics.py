"""What the name of a metric says about it."""

from __future__ import annotations

import pytest

from tdbg_lab.capture.boosting.metrics import is_training_set, metric


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("logloss", "loss"),
        ("mlogloss", "loss"),
        ("rmse", "loss"),
        ("error@0.7", "loss"),
        ("tweedie-nloglik@1.5", "loss"),
        ("cox-nloglik", "loss"),
        ("auc", "scalar"),
        ("ndcg@5-", "scalar"),
        ("map@10", "scalar"),
        ("interval-regression-accuracy", "scalar"),
        ("my_f1_score", "scalar"),
    ],
)
def test_metric_is_a_loss_unless_more_is_better(name, kind):
    assert metric("test", name, 1.0).kind == kind


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("train", True),
        ("training", True),
        ("dtrain", True),
        ("train_set", True),
        ("learn", True),
        ("validation_0", False),
        ("trainer", False),
        ("test", False),
        ("eval_train", False),
    ],
)
def test_training_set_is_known_by_its_name(name, expected):
    assert is_training_set(name) is expected
    assert metric(name, "rmse", 1.0).mode == ("train" if expected else "eval")
