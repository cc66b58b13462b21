"""What speaks against a loss that does not fall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.records import Severity
from tdbg_lab.rules import LossNotDecreasing
from tdbg_lab.rules.losses.evidence import has_no_floor
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run")


def _stuck(made: Made, first: float, later: float) -> list[Severity]:
    """A loss that stays, while the share of right answers goes from one value to another."""
    random = np.random.default_rng(0)
    for step in range(220):
        right = (random.random(48) < (first if step < 24 else later)).mean()
        facts = {"hits": right, "chance": 0.5, "samples": 48, "labels": 2, "entropy": 0.69}
        told = {f"check/loss/x/{name}": value for name, value in facts.items()}
        made.step(step, {"loss/x": 0.7 + 0.06 * random.normal()} | told)
    return [one.severity for one in made.check(LossNotDecreasing())[0]]


@pytest.mark.parametrize(
    ("first", "later", "found"),
    [(0.5, 0.6, []), (0.5, 0.5, [Severity.WARNING]), (0.6, 0.6, [Severity.WARNING])],
    ids=["learnt", "at chance", "better from the start"],
)
def test_predictions_that_have_become_better_than_chance_have_learnt(made: Made, first, later, found) -> None:
    assert _stuck(made, first, later) == found


@pytest.mark.parametrize(("fall", "found"), [(0.03, Severity.NOTICE), (0.0, Severity.WARNING)])
def test_small_fall_that_is_no_chance_is_a_notice_where_labels_are_not_seen(made: Made, fall, found) -> None:
    random = np.random.default_rng(0)
    for step in range(400):
        made.step(step, {"loss/x": 1.0 - fall * (step > 30) + 0.02 * random.normal()})
    assert [one.severity for one in made.check(LossNotDecreasing())[0]] == [found]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (lambda noise: 0.1 * noise, True),
        (lambda noise: -0.05 + 0.1 * noise, True),
        (lambda noise: np.linspace(-0.6, -0.1, 200) + 0.1 * noise, True),
        (lambda noise: np.linspace(-0.1, -3.0, 200) + 0.02 * noise, False),
        (lambda noise: 0.05 + 0.001 * noise, False),
        (lambda noise: -9.0 + 0.1 * noise, False),
    ],
    ids=["policy", "near zero", "comes up to zero", "density", "small", "far below zero"],
)
def test_loss_around_zero_has_no_floor(values, expected) -> None:
    noise = np.random.default_rng(0).normal(size=200)
    assert has_no_floor(values(noise)) is expected


@pytest.mark.parametrize(("growth", "found"), [(3.0, 0), (1.0, 1), (1000.0, 1)])
def test_loss_may_rise_as_its_targets_do(made: Made, growth: float, found: int) -> None:
    for step in range(120):
        size = 1.0 + (growth - 1.0) * min(1.0, max(0, step - 10) / 40)
        loss = 1.0 if step < 20 else 1.0 + 8.0 * min(1.0, step / 50)
        made.step(step, {"loss/x": loss, "check/loss/x/target_size": size})
    assert len(made.check("diverging_loss")[0]) == found


@pytest.mark.parametrize(("back", "found"), [(0.01, 0), (0.0, 1)], ids=["comes down", "stays up"])
def test_loss_that_comes_down_again_after_harder_data_is_left_alone(made: Made, back, found) -> None:
    random = np.random.default_rng(0)
    for step in range(160):
        level = 2.3 * 0.95**step if step < 80 else 1.6 - back * (step - 80)
        made.step(step, {"loss/x": level + 0.03 * random.normal()})
    assert len(made.check(LossNotDecreasing())[0]) == found
