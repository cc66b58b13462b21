from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from tdbg_lab.errors import ConfigError
from tdbg_lab.rules import UnchangedTensor, check_run
from tests.rules import nets
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path


def test_weights_of_another_model_in_the_optimizer_are_found(tmp_path: Path) -> None:
    findings = check_run(nets.stuck(tmp_path / "run"), [UnchangedTensor()])[0]
    assert {one.tensor for one in findings} == {"0.weight"}
    assert findings[0].evidence["weights_count"] == 3


def test_healthy_training_with_a_frozen_layer_is_left_alone(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nets.mlp()
    model[0].requires_grad_(requires_grad=False)
    run = nets.train(tmp_path / "run", model, torch.optim.SGD(model.parameters(), 0.1), steps=100)
    assert check_run(run, [UnchangedTensor()])[0] == []


def test_classic_fires_at_the_third_equal_value_and_not_before(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step, value in enumerate([1.0, 1.0 + 1e-7, 1.0, 5.0, 5.0]):
        made.step(step, {"a.weight": np.full((2, 2), value)})
    (finding,), _ = made.check(UnchangedTensor(classic=True))
    assert (finding.step_first, finding.step_last) == (2, 2)


def test_constant_loss_is_found(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(25):
        made.step(step, {"loss/x": 0.6931})
    (finding,), _ = made.check(UnchangedTensor())
    assert (finding.tensor, finding.step_first) == ("loss/x", 19)


@pytest.mark.parametrize(("low", "moving", "found"), [(True, False, 0), (True, True, 1), (False, False, 1)])
def test_optimizer_that_has_come_to_its_end_is_left_alone(
    tmp_path: Path, *, low: bool, moving: bool, found: int
) -> None:
    made = Made(tmp_path / "run")
    for step in range(40):
        gradients = {"gradient/a.weight": np.ones((4, 4)), "gradient/b.weight": np.ones((4, 4))}
        weights = {"a.weight": np.eye(4), "b.weight": np.eye(4) + (0.01 * step if moving else 0.0)}
        loss = {"loss/x": 2.0 * 0.5**step if low else 2.0 + 0.01 * (step % 3)}
        made.step(step, weights | gradients | loss)
    made.end()
    assert len(made.check(UnchangedTensor(patience=12))[0]) == found


@pytest.mark.parametrize(("ratio", "gradient", "found"), [(0.01, 1.0, 0), (0.0, 1e-6, 0), (0.0, 0.5, 1)])
def test_weights_that_something_puts_back_or_that_are_at_rest_are_left_alone(
    tmp_path: Path, ratio: float, gradient: float, found: int
) -> None:
    made = Made(tmp_path / "run")
    for step in range(40):
        facts = {"optimizer/update_ratio/a.weight": ratio, "optimizer/grad_norm": gradient if step else 1.0}
        made.step(step, {"a.weight": np.eye(4), "gradient/a.weight": np.ones((4, 4)), "loss/x": 2.0, **facts})
    made.end()
    findings = made.check(UnchangedTensor())[0]
    assert len([one for one in findings if one.tensor == "a.weight"]) == found


def test_one_step_to_compare_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"unchanged_tensor.num_steps is 1"):
        UnchangedTensor(num_steps=1)
