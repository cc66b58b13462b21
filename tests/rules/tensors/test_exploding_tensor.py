from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tdbg_lab.records import Severity
from tdbg_lab.rules import ExplodingTensor
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path

GOOD = np.ones((4, 4))
BAD = np.full((4, 4), np.nan)
LAYERS = ("first", "second", "third", "fourth")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run")


def network(
    *, activations: str = "gggg", gradients: str = "gggg", weights: str = "gggg", loss: float = 1.0
) -> dict[str, Any]:
    """A step of four layers: ``g`` good, ``b`` NaN, ``i`` infinite."""
    value = {"g": GOOD, "b": BAD, "i": GOOD * np.inf}
    tensors: dict[str, Any] = {}
    for kind, states in (
        ("activation/{}", activations),
        ("gradient/{}.weight", gradients),
        ("{}.weight", weights),
    ):
        tensors |= {kind.format(layer): value[state] for layer, state in zip(LAYERS, states, strict=True)}
    return tensors | {"loss/CrossEntropyLoss": loss}


def test_nan_from_the_third_layer_on_is_one_finding_about_the_third(made: Made) -> None:
    made.step(0, network())
    for step in range(1, 10):
        made.step(step, network(activations="ggbb", gradients="bbbb", weights="bbbb", loss=np.nan))
    (finding,), _ = made.check(ExplodingTensor())
    assert finding.tensor == "activation/third"
    assert finding.module == "third"
    assert finding.severity is Severity.CRITICAL
    assert (finding.step_first, finding.step_last) == (1, 9)
    assert finding.evidence["nan_count"] == 16
    assert finding.evidence["tensors_not_finite_count"] == 11
    assert finding.advice
    assert finding.view is not None
    assert finding.view.params["kind"] == "activation"


def test_backward_origin_is_the_deepest_bad_gradient(made: Made) -> None:
    for step in range(4):
        made.step(step, {"gradient/a.weight": BAD, "gradient/b.weight": BAD, "gradient/c.weight": GOOD})
    (finding,), _ = made.check(ExplodingTensor())
    assert finding.tensor == "gradient/b.weight"


def test_loss_that_breaks_behind_finite_layers_is_named_itself(made: Made) -> None:
    for step in range(3):
        made.step(step, network(loss=np.inf))
    (finding,), _ = made.check(ExplodingTensor())
    assert finding.tensor == "loss/CrossEntropyLoss"
    assert finding.evidence["origin"] == "loss"


def test_weights_that_were_bad_before_are_named_and_not_the_loss_that_they_spoil(made: Made) -> None:
    """Such as those of a step that was not saved: every output after them is bad, none before."""
    for step in range(4):
        made.step(step, network(activations="bbbb", gradients="bbbb", weights="bggg", loss=np.nan))
    (finding,), _ = made.check(ExplodingTensor())
    assert finding.tensor == "first.weight"
    assert "1 of 4 recorded weights are hit." in finding.message
    assert "it begins in the loss itself" not in finding.message


def test_layers_that_are_all_bad_at_once_tell_no_beginning(made: Made) -> None:
    for step in range(4):
        made.step(step, network(activations="bbbb", gradients="bbbb", weights="bbbb", loss=np.nan))
    (finding,), _ = made.check(ExplodingTensor())
    assert (
        "All 4 recorded weights are hit at once: save every step to see where it begins." in finding.message
    )


def test_bad_data_are_named(made: Made) -> None:
    made.step(0, {"input/first": BAD, **network(activations="bbbb", loss=np.nan)})
    (finding,), _ = made.check(ExplodingTensor())
    assert finding.tensor == "input/first"
    assert "data" in finding.advice[0]


def test_one_bad_loss_is_a_warning_and_three_in_a_row_are_critical(made: Made) -> None:
    losses = [1.0, np.inf, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, np.nan, np.nan, np.nan]
    for step, loss in enumerate(losses):
        made.step(step, {"loss/a": loss})
    (spike, lasting), _ = made.check(ExplodingTensor())
    assert (spike.severity, spike.step_first, spike.step_last) == (Severity.WARNING, 1, 1)
    assert (lasting.severity, lasting.step_first, lasting.step_last) == (Severity.CRITICAL, 8, 10)


def test_steps_that_a_gradient_scaler_skips_are_normal(made: Made) -> None:
    for step in range(60):
        made.step(
            step,
            network(gradients="iiii" if step < 12 or step == 40 else "gggg")
            | {"optimizer/skipped_steps": 1.0},
        )
    assert made.check(ExplodingTensor())[0] == []


def test_gradients_that_never_become_finite_are_a_warning(made: Made) -> None:
    for step in range(25):
        made.step(step, network(gradients="iiii"))
    (finding,), _ = made.check(ExplodingTensor())
    assert (finding.severity, finding.step_first) == (Severity.WARNING, 19)


def test_masks_in_activations_are_not_judged(made: Made) -> None:
    for step in range(30):
        made.step(step, network(activations="gigg"))
    assert made.check(ExplodingTensor())[0] == []


def test_overflow_is_named_before_the_nan_that_it_leads_to(made: Made) -> None:
    masked = {"activation/mask": GOOD * -np.inf}
    made.step(0, masked | network())
    made.step(1, masked | network(activations="gibb", gradients="bbbb", loss=np.nan))
    (finding,), _ = made.check(ExplodingTensor())
    assert finding.tensor == "activation/second"


def test_scaler_that_is_stuck_follows_from_a_loss_that_is_not_finite(made: Made) -> None:
    for step in range(4):
        made.step(step, network())
    scaler = {"check/skipped_in_a_row": 24.0, "check/scale": 1e-3, "optimizer/skipped_steps": 24.0}
    made.step(4, network(activations="ggib", gradients="bbbb", loss=np.nan) | scaler)
    found, _ = made.check("exploding_tensor", "stuck_scaler")
    (root,) = (one for one in found if not one.cause)
    assert (root.rule, root.tensor, root.severity) == (
        "exploding_tensor",
        "activation/third",
        Severity.CRITICAL,
    )


def test_gradients_that_overflow_are_left_to_the_scaler(made: Made) -> None:
    for step in range(30):
        scaler = {"check/skipped_in_a_row": step + 1.0, "check/scale": 2.0 ** (16 - step)}
        made.step(step, network(gradients="iiii") | scaler)
    found, _ = made.check("exploding_tensor", "stuck_scaler")
    assert [one.rule for one in found] == ["stuck_scaler"]


def test_bad_evaluation_loss_is_a_warning(made: Made) -> None:
    made.step(0, network()).step(0, {"loss/a": np.nan}, mode="eval")
    (finding,), _ = made.check(ExplodingTensor())
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("rule", "tensors"),
    [
        (ExplodingTensor(classic=True), ["activation/second"]),
        (ExplodingTensor(classic=True, only_nan=True), []),
        (ExplodingTensor(classic=True, regex="^loss/"), []),
    ],
    ids=["any", "only NaN", "chosen"],
)
def test_classic_condition_is_any_such_value(made: Made, rule: ExplodingTensor, tensors: list[str]) -> None:
    made.step(0, network()).step(1, network(activations="gigg"))
    assert [finding.tensor for finding in made.check(rule)[0]] == tensors


def test_a_loss_where_it_begins_is_named_once(made: Made) -> None:
    made.step(0, {"loss/total": 1.0}).step(1, {"loss/total": np.inf})
    (finding,), _ = made.check(ExplodingTensor())
    assert finding.message.startswith("The loss loss/total is not finite. ")


def test_what_was_said_of_layers_stays_at_steps_without_them(made: Made) -> None:
    made.step(0, network()).step(1, network(loss=np.nan))
    for step in range(2, 6):
        made.step(step, {"loss/CrossEntropyLoss": np.nan})
    (finding,), _ = made.check(ExplodingTensor())
    assert "it begins in the loss itself" in finding.message
    assert "logits" in finding.advice[0]
    assert (finding.severity, finding.step_last) == (Severity.CRITICAL, 5)
    assert finding.evidence["recorded_steps_in_a_row_count"] == 5
