from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Severity
from tdbg_lab.rules import Confusion
from tdbg_lab.rules.setup.rounds import is_last_round
from tests.rules.made import Made
from tests.rules.raws import record

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, labels: np.ndarray, predictions: np.ndarray, step: int = 100) -> Made:
    made = Made(path)
    record(made, step, {"labels": labels, "predictions": predictions})
    made.end()
    return made


def test_class_taken_for_another_is_found_and_a_few_mistakes_are_not(tmp_path: Path) -> None:
    labels = np.tile(np.arange(10), 50)
    some = np.where(np.arange(500) % 7 == 0, (labels + 1) % 10, labels)
    assert write(tmp_path / "some", labels, some).check(Confusion())[0] == []
    (finding,), _ = write(tmp_path / "all", labels, np.where(labels == 4, 9, some)).check(Confusion())
    assert (finding.evidence["label"], finding.evidence["predicted"]) == (4, 9)


def test_model_that_has_learnt_nothing_is_not_confused(tmp_path: Path) -> None:
    labels = np.tile(np.arange(10), 50)
    assert write(tmp_path / "run", labels, np.zeros(500)).check(Confusion())[0] == []


def test_classic_leaves_ten_perfect_classes_alone_and_finds_one_error(tmp_path: Path) -> None:
    labels = np.arange(10)
    rule = Confusion(classic=True)
    assert write(tmp_path / "right", labels, labels).check(rule)[0] == []
    predicted = np.where(labels == 4, 7, labels)
    one = write(tmp_path / "one", labels, predicted)
    assert len(one.check(rule)[0]) == 1
    assert len(one.check(Confusion(classic=True, min_diag=0.0, max_off_diag=0.01))[0]) == 1


def test_scores_are_read_as_classes(tmp_path: Path) -> None:
    labels = np.arange(10)
    scores = write(tmp_path / "scores", labels, np.eye(10))
    assert scores.check(Confusion(classic=True))[0] == []


def test_labels_alone_are_not_enough(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    record(made, 0, {"labels": np.arange(3)})
    made.end()
    assert "handle.record('predictions'" in made.check(Confusion())[1]["confusion"].reason


def test_one_class_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"confusion.category_no is 1"):
        Confusion(category_no=1)


def test_two_classes_told_apart_by_chance_are_found(tmp_path: Path) -> None:
    labels = np.tile(np.arange(10), 60)
    by_lot = np.where(np.arange(600) // 10 % 2, 3, 8)
    mixed = np.where(np.isin(labels, (3, 8)), by_lot, labels)
    (finding,), _ = write(tmp_path / "run", labels, mixed).check(Confusion())
    assert (finding.evidence["label"], finding.evidence["predicted"]) == (3, 8)
    assert (
        write(tmp_path / "half", labels, np.where(np.arange(600) % 4, labels, mixed)).check(Confusion())[0]
        == []
    )


def _pair(counts: tuple[tuple[int, int], tuple[int, int]], others_right: float) -> tuple[np.ndarray, ...]:
    """Labels and predictions: classes 0 and 1 as counted, 80 samples each of two others."""
    told = [(label, guess) for label in (0, 1) for guess in (0, 1) for _ in range(counts[label][guess])]
    right = round(80 * others_right)
    told += [(label, label if sample < right else 0) for label in (2, 3) for sample in range(80)]
    labels, predictions = np.array(told).T
    return labels, predictions


@pytest.mark.parametrize(
    ("counts", "others_right", "found"),
    [
        (((67, 41), (42, 30)), 0.95, 1),  # labels by chance: 67 of 108 and 42 of 72 are taken for class 0
        (((73, 54), (53, 67)), 0.95, 0),  # alike, and told apart a little
        (((67, 41), (42, 30)), 0.85, 0),  # the others are not quite learnt either
        (((5, 103), (2, 70)), 0.95, 1),  # one is taken for the other
        (((5, 103), (2, 70)), 0.6, 0),  # so it is, but little else is learnt
        (((12, 9), (10, 9)), 0.95, 0),  # too few to rule out that they are told apart
    ],
)
def test_mixed_classes_are_told_from_alike_ones(
    tmp_path: Path, counts: tuple[tuple[int, int], tuple[int, int]], others_right: float, found: int
) -> None:
    assert len(write(tmp_path / "run", *_pair(counts, others_right)).check(Confusion())[0]) == found


def test_two_classes_of_which_one_is_told_seldom_are_not_confused(tmp_path: Path) -> None:
    labels = (np.arange(500) % 5 == 0).astype(int)
    seldom = np.where(np.arange(500) % 50 == 0, labels, 0)
    assert write(tmp_path / "run", labels, seldom).check(Confusion())[0] == []


def test_model_that_has_just_begun_is_not_judged(tmp_path: Path) -> None:
    labels = np.tile(np.arange(2), 250)
    assert write(tmp_path / "run", labels, np.ones(500), step=99).check(Confusion())[0] == []


def test_one_of_two_mixed_classes_may_be_told_seldom(tmp_path: Path) -> None:
    labels = np.tile(np.arange(10), 50)
    mixed = np.where(np.isin(labels, (4, 9)), np.where(np.arange(500) // 10 % 5 == 0, 9, 4), labels)
    (finding,), _ = write(tmp_path / "run", labels, mixed).check(Confusion())
    assert {finding.evidence["label"], finding.evidence["predicted"]} == {4, 9}


@pytest.mark.parametrize(("rare_right", "found"), [(True, 1), (False, 0)])
def test_common_words_of_many_that_are_told_for_others_are_not_confused(
    tmp_path: Path, *, rare_right: bool, found: int
) -> None:
    common, rare = np.tile(np.arange(6), 50), np.tile(np.arange(6, 46), 12)
    labels = np.r_[common, rare]
    told = np.r_[np.where(common == 4, 5, common), rare if rare_right else rare % 6]
    assert len(write(tmp_path / "run", labels, told).check(Confusion())[0]) == found


@pytest.mark.parametrize(
    ("fall", "rate", "severity"),
    [(0.01, 0.1, Severity.NOTICE), (0.0, 0.1, Severity.WARNING), (0.01, 0.005, Severity.WARNING)],
    ids=["learns", "does not", "schedule at its end"],
)
def test_what_is_confused_while_much_is_still_learnt_is_a_notice(
    tmp_path: Path, fall: float, rate: float, severity: Severity
) -> None:
    labels, made = np.tile(np.arange(10), 50), Made(tmp_path / "run")
    for step in range(101):
        lowered = {"optimizer/lr/0": 0.1 if step < 90 else rate}
        made.step(step, {"loss/a": 2.0 - fall * step + 0.01 * (step % 3)} | lowered)
    record(made, 101, {"labels": labels, "predictions": np.where(labels == 4, 9, labels)})
    made.step(101, {"loss/a": 2.0 - fall * 101})
    made.end()
    (finding,), _ = made.check(Confusion())
    assert finding.severity is severity


@pytest.mark.parametrize(
    ("framework", "rounds", "step", "last"),
    [
        *(("xgboost", 50, 49, True), ("lightgbm", 50, 48, False), ("xgboost", "50", 49, False)),
        *(("pytorch", 50, 49, False), ("xgboost", None, 49, False)),
    ],
)
def test_last_round_of_boosting_is_known_by_how_many_are_planned(framework, rounds, step, last) -> None:
    info = SimpleNamespace(framework=framework, hyperparameters={"num_boost_round": rounds})
    assert is_last_round(SimpleNamespace(info=info), step) is last


@pytest.mark.parametrize(
    ("told", "others_right", "found"),
    [(0.5, 0.82, 1), (0.53, 0.82, 1), (0.65, 0.82, 0), (0.5, 0.6, 0)],
    ids=["by chance", "a trace by heart", "alike", "others are not learnt"],
)
def test_mixed_classes_among_others_that_are_harder_take_more_batches(
    tmp_path: Path, told: float, others_right: float, found: int
) -> None:
    made, random = Made(tmp_path / "run"), np.random.default_rng(0)
    for step in range(100, 132):
        labels = random.integers(0, 6, 80)
        right = random.random(80) < np.where(labels < 2, told, others_right)
        other = np.where(labels < 2, 1 - labels, 2 + (labels - 1) % 4)
        record(made, step, {"labels": labels, "predictions": np.where(right, labels, other)})
    made.end()
    assert len(made.check(Confusion())[0]) == found


_MIXED = ((223, 32, 10, 34), (36, 85, 35, 49), (33, 97, 52, 45), (21, 19, 12, 167))
_ALIKE = ((210, 27, 35, 27), (32, 114, 18, 41), (18, 18, 162, 29), (22, 19, 26, 152))


@pytest.mark.parametrize(
    ("counts", "framework", "rounds", "found"),
    [(_MIXED, "lightgbm", 20, 1), (_ALIKE, "lightgbm", 20, 0), (_MIXED, "pytorch", 20, 0)],
    ids=["by chance", "hard", "a network"],
)
def test_two_classes_that_trees_tell_apart_by_chance_are_found_among_hard_ones(
    tmp_path: Path, counts, framework: str, rounds: int, found: int
) -> None:
    cells = np.array([(label, guess) for label in range(4) for guess in range(4)])
    labels, predictions = np.repeat(cells, np.array(counts).flatten(), axis=0).T
    made = Made(tmp_path / "run", framework=framework, hyperparameters={"num_boost_round": rounds})
    record(made, rounds - 1, {"labels": labels, "predictions": predictions})
    made.end()
    findings, _ = made.check(Confusion(start_step=0))
    assert [{one.evidence["label"], one.evidence["predicted"]} for one in findings] == [{1, 2}] * found
