from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

from tdbg_lab.errors import ConfigError
from tdbg_lab.rules import TensorVariance, check_run
from tests.rules import nets
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("scale", "found"), [(1e-7, ["0.weight"]), (1.0, [])])
def test_tiny_weights_are_found_where_the_loss_stays(tmp_path: Path, scale: float, found: list[str]) -> None:
    torch.manual_seed(0)
    model = nets.mlp(32, 3, nn.Tanh)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("weight"):
                parameter.mul_(scale)
    run = nets.train(tmp_path / "run", model, torch.optim.SGD(model.parameters(), 0.01), steps=120)
    assert [one.tensor for one in check_run(run, [TensorVariance()])[0]] == found


class WithToken(nn.Module):
    """A vector of its own in front of a network, as a vision transformer has one."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(1e-6 * torch.randn(1, 1, 64))
        self.body = nets.mlp(32, 3, nn.Tanh)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x + self.token[0])


def test_a_vector_that_begins_small_is_no_matrix(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = WithToken()
    run = nets.train(tmp_path / "run", model, torch.optim.SGD(model.parameters(), 1e-9), steps=120)
    assert check_run(run, [TensorVariance()])[0] == []


@pytest.mark.parametrize(
    ("limits", "fires"), [({"max_threshold": 0.24}, True), ({"max_threshold": 0.25}, False)]
)
def test_classic_compares_the_variance_and_excludes_the_limit(tmp_path: Path, limits, fires) -> None:
    made = Made(tmp_path / "run").step(0, {"a.weight": np.array([0.0, 1.0, 0.0, 1.0])})
    assert bool(made.check(TensorVariance(classic=True, **limits))[0]) is fires


def test_classic_without_limits_says_what_is_missing(tmp_path: Path) -> None:
    made = Made(tmp_path / "run").step(0, {"a.weight": np.ones(4)})
    assert "max_threshold" in made.check(TensorVariance(classic=True))[1]["tensor_variance"].reason


def test_negative_gain_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"tensor_variance.min_gain is -1"):
        TensorVariance(min_gain=-1)
