from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.records import RuleStatus, Severity
from tdbg_lab.rules import LossNotDecreasing
from tests.rules.made import Made

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run")


def write(
    made: Made, loss: Callable[[float], float], *, steps: int = 400, noise: float = 0.05, every: int = 1
) -> Made:
    random = np.random.default_rng(1)
    for step in range(0, steps, every):
        made.step(step, {"loss/x": loss(step) + random.normal() * noise})
    return made


@pytest.mark.parametrize("every", [1, 10])
def test_loss_at_its_start_is_found_after_the_patience(made: Made, every: int) -> None:
    write(made, lambda _: 2.3, every=every)
    (finding,), _ = made.check(LossNotDecreasing())
    assert finding.tensor == "loss/x"
    assert finding.severity is Severity.WARNING
    assert 150 <= finding.step_first <= 230
    assert finding.evidence["loss_noise"] == pytest.approx(0.05, rel=0.4)
    assert finding.view is not None
    assert dict(finding.view.params) == {"tensors": ["loss/x"]}


@pytest.mark.parametrize(
    "loss",
    [
        lambda step: 2.3 * 0.99**step,
        lambda step: 2.3 - step * 5e-4,
        lambda step: 0.4 + 1.9 * 0.95**step,
        lambda step: 0.4 + 1.9 * 0.95**step + (5.0 if step in (150, 151, 152, 250) else 0.0),
        lambda step: 1e-4 * (1 + step % 7) + 2.3 * 0.9**step,
        lambda step: -10.0 - step * 0.05,
    ],
    ids=["falls", "falls slowly", "converged", "spikes", "nearly zero", "negative"],
)
def test_healthy_losses_are_left_alone(made: Made, loss) -> None:
    write(made, loss)
    assert made.check(LossNotDecreasing())[0] == []


@pytest.mark.parametrize(("start", "found"), [(0.7, 0), (0.31, 1)])
def test_what_was_learnt_in_the_warm_up_counts(made: Made, start: float, found: int) -> None:
    random = np.random.default_rng(1)
    for step in range(260):
        level = max(0.3, start - step * (start - 0.3) / 15)
        rate = 0.1 * min(1.0, (step + 1) / 16)
        made.step(step, {"loss/x": level + 0.05 * random.normal(), "optimizer/lr/0": rate})
    assert len(made.check(LossNotDecreasing())[0]) == found


@pytest.mark.parametrize(("rate", "found"), [(0.01, 1), (0.5, 0)])
def test_loss_is_stuck_sooner_where_the_rate_is_at_its_end(made: Made, rate: float, found: int) -> None:
    random = np.random.default_rng(1)
    for step in range(130):
        lowered = {"optimizer/lr/0": 1.0 if step < 90 else rate}
        made.step(step, {"loss/x": 2.3 + 0.05 * random.normal()} | lowered)
    assert len(made.check(LossNotDecreasing())[0]) == found


def test_warm_up_of_the_learning_rate_is_waited_for(made: Made) -> None:
    for step in range(500):
        rate = min(1.0, step / 300)
        made.step(step, {"loss/x": 2.3 if step < 280 else 2.3 * 0.98 ** (step - 280), "optimizer/lr/0": rate})
    assert made.check(LossNotDecreasing())[0] == []


def test_loss_that_goes_up_and_stays_is_found_and_critical_above_its_start(
    made: Made, tmp_path: Path
) -> None:
    write(made, lambda step: 2.3 * 0.98**step if step < 200 else 1.5)
    (finding,), _ = made.check(LossNotDecreasing())
    assert finding.severity is Severity.WARNING
    assert 215 <= finding.step_first <= 225
    far = write(Made(tmp_path / "far"), lambda step: 2.3 * 0.98**step if step < 200 else 40.0)
    (finding,), _ = far.check(LossNotDecreasing())
    assert finding.severity is Severity.CRITICAL


@pytest.mark.parametrize(
    ("fact", "value", "found"),
    [("entropy", 2.3, 0), ("entropy", 0.5, 1), ("correlation", 0.9, 0), ("correlation", 0.3, 1)],
)
def test_model_that_was_good_when_it_began_need_not_learn(
    made: Made, fact: str, value: float, found: int
) -> None:
    random = np.random.default_rng(1)
    for step in range(260):
        loss = 0.35 + 0.05 * random.normal()
        facts = {f"check/loss/x/{fact}": value, "optimizer/update_ratio/a.weight": 1e-5}
        made.step(step, {"loss/x": loss, **facts})
    for one in (LossNotDecreasing(), "learning_rate"):  # together, the rate is the cause of the other
        assert {finding.rule for finding in made.check(one)[0]} == (
            {getattr(one, "name", one)} if found else set()
        )


def test_reward_that_goes_up_and_down_is_no_rising_loss(made: Made) -> None:
    write(made, lambda step: 0.01 - min(step, 150) * 0.002 + max(0, step - 150) * 0.001)
    assert made.check(LossNotDecreasing(patience=1000))[0] == []


def test_loss_that_rises_early_and_comes_down_again_is_left_alone(made: Made) -> None:
    """As of an autoencoder through codes, of which there is nothing to miss at first."""
    write(made, lambda step: 0.08 + 0.1 * 0.9**step + 0.4 * np.exp(-(((step - 33) / 8) ** 2)), noise=0.005)
    assert made.check(LossNotDecreasing())[0] == []


def test_loss_that_rises_early_and_stays_is_found(made: Made) -> None:
    write(made, lambda step: 0.1 + 0.1 * 0.9**step + 0.4 * (step > 25), noise=0.005)
    (finding,), _ = made.check(LossNotDecreasing())
    assert finding.severity is Severity.CRITICAL
    assert finding.step_first < 80


def test_several_losses_are_not_judged_unless_one_is_named(made: Made) -> None:
    for step in range(200):
        made.step(step, {"loss/generator": 1.0, "loss/discriminator": 1.0})
    findings, states = made.check(LossNotDecreasing())
    assert findings == []
    assert states["loss_not_decreasing"].status is RuleStatus.NOT_APPLICABLE
    assert "loss/generator" in states["loss_not_decreasing"].reason
    findings, _ = made.check(LossNotDecreasing(tensor="loss/discriminator"))
    assert [finding.tensor for finding in findings] == ["loss/discriminator"]


def test_loss_that_the_user_logs_is_one(made: Made) -> None:
    for step in range(200):
        made.step(step, {"loss": 3.0, "accuracy": 0.1})
    assert [finding.tensor for finding in made.check(LossNotDecreasing())[0]] == ["loss"]


def test_loss_that_is_not_finite_is_another_rules_business(made: Made) -> None:
    for step in range(300):
        made.step(step, {"loss/x": 1.0 if step < 20 else np.nan})
    assert made.check(LossNotDecreasing())[0] == []


def test_stuck_loss_with_a_known_cause_is_not_a_second_finding(made: Made) -> None:
    for step in range(300):
        made.step(step, {"loss/x": 2.3, "activation/relu": np.zeros((64, 8))})
    assert [finding.rule for finding in made.check("dead_relu", "loss_not_decreasing")[0]] == ["dead_relu"]


def test_classic_condition_on_the_published_example(made: Made) -> None:
    """0.30 at step 12 is no less than 0.30 at step 0: equal counts as not decreasing."""
    for step, loss in zip((0, 4, 8, 12, 16), (0.3, 0.33, 0.31, 0.30, 0.28), strict=True):
        made.step(step, {"loss/x": loss})
    (finding,), _ = made.check(LossNotDecreasing(classic=True, diff_percent=0.0))
    assert (finding.step_first, finding.step_last) == (12, 12)


def test_classic_checks_keep_their_distance(made: Made) -> None:
    for step in range(0, 40, 3):
        made.step(step, {"loss/x": 1.0})
    rule = LossNotDecreasing(classic=True)
    steps = np.arange(0, 40, 3)
    pairs = {int(steps[n]): rule._classic_pair(steps[: n + 1]) for n in range(len(steps))}
    assert {step: int(steps[pair]) for step, pair in pairs.items() if pair is not None} == {
        12: 0,
        24: 12,
        36: 24,
    }


def test_players_of_a_game_are_not_judged(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(3):
        tensors = {"optimizer/lr/maker.0": 0.1, "optimizer/lr/judge.0": 0.1, "loss/bce": 1.0}
        made.step(step, tensors | {"maker.0.weight": np.ones((2, 2)), "judge.0.weight": np.ones((2, 2))})
    made.end()
    reason = made.check(LossNotDecreasing())[1]["loss_not_decreasing"].reason
    assert "Several models are trained" in reason


def test_two_optimizers_of_one_model_are_no_game(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(3):
        tensors = {"optimizer/lr/muon.0": 0.1, "optimizer/lr/adam.0": 0.1, "loss/bce": 1.0}
        made.step(step, tensors | {"first.weight": np.ones((2, 2)), "last.weight": np.ones((2, 2))})
    made.end()
    assert made.check(LossNotDecreasing())[1]["loss_not_decreasing"].reason == ""


_GUESSED = {"entropy": 2.3, "hits": 0.12, "chance": 0.1, "samples": 64.0}
_APART = {"prediction_size": 4.0, "target_size": 1.0, "correlation": 0.1}


@pytest.mark.parametrize(
    ("kind", "facts", "end", "found"),
    [
        (1.0, _GUESSED, 5.0, "how frequent"),
        (1.0, _GUESSED, 4.0, ""),
        (1.0, _GUESSED | {"hits": 0.6}, 5.0, ""),  # most is told
        (1.0, _GUESSED | {"weight_slope": -1.0}, 5.0, ""),  # weights of classes make it larger
        (1.0, _GUESSED | {"samples": 8.0}, 5.0, ""),  # it may be a sum over them
        (7.0, _APART, 17.0, "4 times as large"),
        (7.0, _APART | {"correlation": 0.8}, 17.0, ""),
        (7.0, _APART | {"prediction_size": 1.0}, 1.8, ""),
        (0.0, _APART, 17.0, ""),
    ],
)
def test_a_loss_that_falls_and_is_worse_than_that_of_knowing_nothing_is_found(made, kind, facts, end, found):
    for step in range(200):
        seen = {f"check/loss/x/{name}": value for name, value in {"kind": kind, **facts}.items()}
        made.step(step, {"loss/x": end + 10 * 0.9**step, **seen})
    findings, _ = made.check(LossNotDecreasing())
    assert [found in one.message and one.step_first >= 100 for one in findings] == [True] * bool(found)


@pytest.mark.parametrize(("least", "found"), [(0.0, False), (3.0, True)])
def test_predictions_that_are_too_large_still_are_left_alone_while_they_come_down(made, least, found):
    for step in range(200):
        size = max(least, 6.0 - step / 40)
        facts = {"kind": 7.0, **_APART, "prediction_size": size}
        made.step(step, {"loss/x": size**2, **{f"check/loss/x/{name}": one for name, one in facts.items()}})
    assert bool(made.check(LossNotDecreasing())[0]) is found


def test_task_that_becomes_harder_again_and_again_is_left_alone(made: Made) -> None:
    """The loss jumps up, and comes down slowly."""
    write(made, lambda step: 0.3 + 2 * np.exp(-(step % 500) / 100), steps=2000)
    assert made.check(LossNotDecreasing())[0] == []


def test_loss_that_comes_down_again_ever_more_slowly_is_left_alone(made: Made) -> None:
    """Another task from step 376 on, and a penalty that holds what was learnt of the first one."""

    def loss(step: float) -> float:
        passed = step - 376
        if passed < 0:
            return 0.4 + 1.9 * np.exp(-step / 120)
        return 1.2 - 0.003 * passed + 2.2 * np.exp(-passed / 15)

    write(made, loss, steps=500, noise=0.15)
    assert made.check(LossNotDecreasing())[0] == []


def test_small_fall_that_noise_hides_is_no_stuck_loss(made: Made) -> None:
    write(made, lambda step: 1.2 - 0.15 * (1 - np.exp(-step / 300)), steps=1500, noise=0.1)
    assert made.check(LossNotDecreasing())[0] == []


def test_loss_that_jumps_up_with_a_peak_and_stays_is_found(made: Made) -> None:
    def loss(step: float) -> float:
        return 0.3 + 2 * np.exp(-step / 50) if step < 200 else 1.5 + 2 * np.exp(-(step - 200) / 30)

    write(made, loss, steps=600)
    (finding,), _ = made.check(LossNotDecreasing())
    assert "stays there" in finding.message
