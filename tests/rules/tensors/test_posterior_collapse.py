"""Variational autoencoders of digits, whose code is used or is its prior."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.records import RuleStatus, Severity
from tdbg_lab.rules import PosteriorCollapse, check_run
from tests.rules import nets
from tests.rules.healthy_loops import digits
from tests.rules.made import Made

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CODE = 6


class Varied(nn.Module):
    """Means and logarithms of variances by a layer each, or by one for both."""

    def __init__(self, *, at_once: bool = False) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.decode = nn.Sequential(nn.Linear(CODE, 64), nn.ReLU(), nn.Linear(64, 64))
        if at_once:
            self.code = nn.Linear(64, 2 * CODE)
        else:
            self.mean, self.spread = nn.Linear(64, CODE), nn.Linear(64, CODE)
        self.at_once = at_once

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.encode(x)
        mean, spread = self.code(h).chunk(2, 1) if self.at_once else (self.mean(h), self.spread(h))
        far = -0.5 * (1 + spread - mean**2 - spread.exp()).sum(1).mean()
        return self.decode(mean + torch.randn_like(mean) * (spread / 2).exp()), far


def trained(path: Path, weight: Callable[[int], float], steps: int = 160, *, at_once: bool = False) -> Path:
    torch.manual_seed(0)
    x, _ = digits()
    model = Varied(at_once=at_once)
    optimizer, criterion = torch.optim.Adam(model.parameters(), 3e-3), nn.MSELoss(reduction="sum")
    options = {"profiler": False, "rules": "none", "save_every": 2, "strict": True}
    with tdbg.attach(model, optimizer=optimizer, loss=criterion, store=path, **options):
        for step in range(steps):
            at = torch.randint(len(x), (64,))
            optimizer.zero_grad()
            drawn, far = model(x[at])
            (criterion(drawn, x[at]) / 64 + weight(step) * far).backward()
            optimizer.step()
    return path


@pytest.mark.parametrize("at_once", [False, True])
def test_code_held_at_its_prior_is_found(tmp_path: Path, at_once: bool) -> None:  # noqa: FBT001
    found = tdbg.run_rules(trained(tmp_path / "run", lambda _: 20.0, at_once=at_once))
    (alarm,) = [one for one in found if one.severity is not Severity.NOTICE]
    assert alarm.rule == "posterior_collapse"
    assert alarm.tensor == ("activation/code" if at_once else "activation/mean")
    assert alarm.evidence["width"] == CODE


@pytest.mark.parametrize("weight", [lambda _: 0.2, lambda step: min(0.3, step / 300)], ids=["small", "rises"])
def test_code_that_is_used_is_left_alone(tmp_path: Path, weight: Callable[[int], float]) -> None:
    run = trained(tmp_path / "run", weight)
    assert [one.message for one in tdbg.run_rules(run) if one.severity is not Severity.NOTICE] == []


@pytest.mark.parametrize(("spread", "found"), [(0.2, 1), (0.6, 0)])
def test_variances_of_about_one_are_those_of_the_prior(tmp_path: Path, spread: float, found: int) -> None:
    rng = np.random.default_rng(0)
    made = Made(tmp_path / "run")
    for step in range(40):
        weights = {"mean.weight": np.ones((CODE, 64)), "spread.weight": np.ones((CODE, 64)),
                   "decode.0.weight": np.ones((64, CODE))}  # fmt: skip
        outputs = {"activation/mean": 0.02 * rng.normal(size=(32, CODE)),
                   "activation/spread": spread * rng.normal(size=(32, CODE)),
                   "activation/decode.0": rng.normal(size=(32, 64))}  # fmt: skip
        made.step(step, {"loss/x": 1.0} | weights | outputs)
    made.end()
    assert len(made.check("posterior_collapse")[0]) == found


def test_other_models_have_no_code(tmp_path: Path) -> None:
    model = nets.mlp()
    path = nets.train(tmp_path / "run", model, torch.optim.SGD(model.parameters(), 0.1), steps=20)
    (state,) = check_run(path, [PosteriorCollapse()])[1]
    assert state.status is RuleStatus.NOT_APPLICABLE
