from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Severity
from tdbg_lab.rules import ClassImbalance, check_run
from tests.rules.made import Made
from tests.rules.raws import record

if TYPE_CHECKING:
    from pathlib import Path


def train(path: Path, *, rare: float, apart: float) -> Path:
    """Two classes with normal features `apart` standard deviations; predictions are recorded."""
    torch.manual_seed(0)
    model = nn.Linear(2, 2)
    optimizer, criterion = torch.optim.SGD(model.parameters(), 0.1), nn.CrossEntropyLoss()
    with tdbg.attach(
        model,
        optimizer=optimizer,
        loss=criterion,
        store=path,
        profiler=False,
        collections=["losses", "custom"],
    ) as handle:
        for _ in range(200):
            y = (torch.rand(256) < rare).long()
            x = torch.randn(256, 2) + apart * y[:, None]
            optimizer.zero_grad()
            logits = model(x)
            criterion(logits, y).backward()
            handle.record("predictions", logits, labels=y)
            optimizer.step()
        return handle.run_path


@pytest.mark.parametrize(
    ("rare", "apart", "severities"),
    [
        (0.025, 0.3, [Severity.WARNING]),
        (0.08, 0.3, [Severity.NOTICE]),
        (0.05, 6.0, [Severity.NOTICE]),
        (0.4, 0.3, []),
    ],
    ids=["rare and given up", "not so rare", "rare but learnt", "balanced"],
)
def test_rare_class_is_a_warning_once_it_is_given_up(tmp_path: Path, rare, apart, severities) -> None:
    findings, _ = check_run(train(tmp_path / "run", rare=rare, apart=apart), [ClassImbalance()])
    assert [one.severity for one in findings] == severities


@pytest.mark.parametrize(("rare", "fires"), [(10, True), (91, False), (90, True)])
def test_classic_fires_on_990_against_10(tmp_path: Path, rare: int, fires) -> None:
    made = Made(tmp_path / "run")
    record(made, 0, {"labels": np.r_[np.zeros(1001 - rare), np.ones(rare)]})
    made.end()
    assert bool(made.check(ClassImbalance(classic=True))[0]) is fires


def test_classic_fires_on_a_class_that_is_mispredicted(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    labels = np.repeat([0, 1], 300)
    record(made, 0, {"labels": labels, "predictions": np.zeros(600)})
    made.end()
    (finding,), _ = made.check(ClassImbalance(classic=True))
    assert finding.evidence["class"] == 1


def test_run_without_labels_says_how_to_record_them(tmp_path: Path) -> None:
    made = Made(tmp_path / "run").step(0, {"loss/x": 1.0})
    assert "handle.record('predictions'" in made.check(ClassImbalance())[1]["class_imbalance"].reason


def test_share_above_one_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"class_imbalance.threshold_misprediction is 70"):
        ClassImbalance(threshold_misprediction=70)


@pytest.mark.parametrize(("wrong", "fires"), [(8, True), (6, False)])
def test_rare_classes_are_judged_together(tmp_path: Path, wrong: int, fires: bool) -> None:  # noqa: FBT001
    made = Made(tmp_path / "run")
    labels = np.r_[np.zeros(500), np.arange(1, 11)]
    predictions = labels.copy()
    predictions[500 : 500 + wrong] = 0
    record(made, 100, {"labels": labels, "predictions": predictions})
    made.end()
    (finding,), _ = made.check(ClassImbalance())
    assert (finding.severity is Severity.WARNING) is fires


@pytest.mark.parametrize(("wrong", "warned"), [(36, True), (20, False)])
def test_class_rare_in_training_is_judged_by_its_predictions_in_evaluation(
    tmp_path: Path,
    wrong: int,
    warned: bool,  # noqa: FBT001
) -> None:
    made = Made(tmp_path / "run")
    taught = np.r_[np.zeros(4), np.ones(300), np.full(300, 2)]
    held = np.repeat([0, 1, 2], 40)
    told = held.copy()
    told[:wrong] = 1
    record(made, 100, {"labels": taught, "predictions": taught})
    record(made, 100, {"labels": held, "predictions": told}, mode="eval")
    made.end()
    (finding,), _ = made.check(ClassImbalance())
    assert (finding.severity is Severity.WARNING) is warned
    assert finding.evidence["labels_count"] == 4
    assert finding.evidence["mispredicted_percent"] == 100 * wrong / 40


@pytest.mark.parametrize(
    ("others", "severity"),
    [(1.0, Severity.WARNING), (0.7, Severity.NOTICE)],
    ids=["learnt", "not yet learnt"],
)
def test_class_ten_times_rarer_counts_once_all_others_are_learnt(tmp_path: Path, others, severity) -> None:
    made = Made(tmp_path / "run")
    labels = np.r_[np.tile(np.arange(1, 6), 100), np.zeros(6)].astype(int)
    held = np.tile(np.arange(6), 40)
    random = np.random.default_rng(0)
    told = np.where((held == 0) | (random.random(240) > others), 1, held)
    record(made, 120, {"predictions": labels, "predictions/labels": labels})
    record(made, 120, {"predictions": told, "predictions/labels": held}, mode="eval")
    made.end()
    (finding,), _ = made.check(ClassImbalance())
    assert finding.severity is severity


@pytest.mark.parametrize(
    ("words", "common", "severity"),
    [
        (100, 1, Severity.NOTICE),
        (60, 40, Severity.NOTICE),
        (60, 50, Severity.WARNING),
        (20, 1, Severity.WARNING),
    ],
)
def test_rare_words_of_a_vocabulary_are_told_wrongly_by_everybody(
    tmp_path: Path, words, common, severity
) -> None:
    made = Made(tmp_path / "run")
    labels = np.r_[np.repeat(np.arange(common), 600), np.repeat(np.arange(common, words), 10)]
    told = np.where(labels < common, labels, 0)
    record(made, 100, {"labels": labels, "predictions": told})
    made.end()
    (finding,), _ = made.check(ClassImbalance())
    assert finding.severity is severity


@pytest.mark.parametrize(("told", "severity"), [(0.3, Severity.NOTICE), (0.7, Severity.WARNING)])
def test_rare_classes_are_given_up_only_by_a_model_that_tells_the_frequent_ones(
    tmp_path: Path, told, severity
) -> None:
    """Of frequent classes, too, only the commonest is told where what is wanted is mostly a guess."""
    made, random = Made(tmp_path / "run"), np.random.default_rng(0)
    labels = np.r_[np.zeros(900, int), np.repeat(np.arange(1, 6), 300), np.repeat(np.arange(6, 12), 10)]
    knows = (labels == 0) | ((labels < 6) & (random.random(len(labels)) < told))
    record(made, 100, {"labels": labels, "predictions": np.where(knows, labels, 0)})
    made.end()
    (finding,), _ = made.check(ClassImbalance())
    assert finding.severity is severity


def _weighted(path: Path, loss: nn.Module, columns: int, *, rare: float = 0.08) -> list[Severity]:
    """What is found where a loss weighs its classes; predictions are not recorded."""
    torch.manual_seed(0)
    model = nn.Linear(2, columns)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with tdbg.attach(model, optimizer=optimizer, loss=loss, store=path, save_every=2, profiler=False):
        for _ in range(60):
            y = (torch.rand(100) < rare).long()
            logits = model(torch.randn(100, 2) + 2.0 * y[:, None])
            optimizer.zero_grad()
            loss(logits, y if columns > 1 else y[:, None].float()).backward()
            optimizer.step()
    return [one.severity for one in check_run(path, [ClassImbalance()])[0]]


@pytest.mark.parametrize(
    ("weight", "severities"),
    [
        ([0.92, 0.08], [Severity.WARNING]),  # by how many there are
        ([1 / 0.92, 1 / 0.08], []),
        ([1.0, 1.0], []),
        ([2.0, 1.0], []),  # to miss the common one costs more
    ],
)
def test_weights_by_count_are_upside_down(tmp_path: Path, weight, severities) -> None:
    loss = nn.CrossEntropyLoss(torch.tensor(weight))
    assert _weighted(tmp_path / "run", loss, 2) == severities


@pytest.mark.parametrize(("weight", "severities"), [(0.08 / 0.92, [Severity.WARNING]), (0.92 / 0.08, [])])
def test_weight_of_yes_by_count_is_upside_down(tmp_path: Path, weight, severities) -> None:
    loss = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(weight))
    assert _weighted(tmp_path / "run", loss, 1) == severities


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize(("weight", "severities"), [(0.2, [Severity.WARNING]), (5.0, []), (1.0, [])])
def test_weight_of_yes_of_trees_is_upside_down(tmp_path: Path, library: str, weight, severities) -> None:
    boosted = pytest.importorskip(library)
    random = np.random.default_rng(0)
    x = random.normal(size=(1200, 4))
    y = (x[:, 0] + 0.5 * random.normal(size=1200) > 1.1).astype(int)
    if library == "lightgbm":
        data = boosted.Dataset(x, y)
        callback = tdbg.LightGBMCallback(tmp_path / "run", train=(x, y), save_every=2, profiler=False)
        settings = {"objective": "binary", "num_threads": 1, "verbosity": -1, "num_leaves": 8}
    else:
        data = boosted.DMatrix(x, y)
        callback = tdbg.XGBoostCallback(tmp_path / "run", train=data, save_every=2, profiler=False)
        settings = {"objective": "binary:logistic", "nthread": 1, "max_depth": 3}
    boosted.train(settings | {"scale_pos_weight": weight}, data, 20, callbacks=[callback])
    found = check_run(callback.run.path, [ClassImbalance()])[0]
    assert [one.severity for one in found if "weigh" in one.message] == severities


def test_weights_of_balanced_classes_say_nothing(tmp_path: Path) -> None:
    loss = nn.CrossEntropyLoss(torch.tensor([0.6, 0.4]))
    assert _weighted(tmp_path / "run", loss, 2, rare=0.4) == []


@pytest.mark.parametrize(("several", "severities"), [(3.0, [Severity.WARNING]), (1.0, [])])
def test_single_class_is_told_where_evaluations_have_several(tmp_path: Path, several, severities) -> None:
    made = Made(tmp_path / "run")
    for step in (20, 40):
        made.step(step, {"check/loss/CrossEntropyLoss/labels": several}, mode="eval")
    record(made, 60, {"labels": np.zeros(600), "predictions": np.zeros(600)})
    made.end()
    assert [one.severity for one in made.check(ClassImbalance())[0]] == severities


@pytest.mark.parametrize(
    ("classes", "slope", "found"), [(5, 0.65, 1), (2, 0.65, 0), (2, 1.0, 1), (5, 0.1, 0), (5, -0.65, 0)]
)
def test_weights_of_several_classes_may_be_tempered_counts(tmp_path: Path, classes, slope, found) -> None:
    made = Made(tmp_path / "run")
    counts = {"weighted_labels": 2000.0, "weighted_rarest": 80.0, "weighted_commonest": 900.0}
    facts = counts | {"weight_slope": slope, "weight_fit": 0.99 if slope > 0 else -0.99, "classes": classes}
    for step in range(3):
        made.step(step, {f"check/loss/CrossEntropyLoss/{name}": float(one) for name, one in facts.items()})
    assert len(made.check("class_imbalance")[0]) == found
