"""Two views drawn together: with and without what keeps the dimensions of their code apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.capture.effective_rank import effective_rank
from tdbg_lab.rules.setup import LostDimensions
from tests.rules.healthy_loops import digits
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path


class Twinned(nn.Module):
    """Both codes alike in each number, and no number like another, if `apart` (Barlow Twins)."""

    def __init__(self, apart: float) -> None:
        super().__init__()
        self.apart = apart

    def forward(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        one, other = ((code - code.mean(0)) / (code.std(0) + 1e-4) for code in (one, other))
        alike = one.T @ other / len(one)
        off = alike - torch.diag(alike.diagonal())
        return (1 - alike.diagonal()).square().sum() + self.apart * off.square().sum()


class Together(nn.Module):
    """The same of both views side by side, with the labels that a loader hands over."""

    def __init__(self, apart: float) -> None:
        super().__init__()
        self.twinned = Twinned(apart)

    def forward(self, both: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return self.twinned(*both.chunk(2, 1))


def coded(path: Path, criterion: nn.Module) -> list[tdbg.Finding]:
    """200 steps over noisy views of digits."""
    torch.manual_seed(0)
    x, y = digits()
    model = nn.Sequential(
        nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 16)
    )
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    options = {"profiler": False, "rules": "none", "save_every": 2, "strict": True}
    with tdbg.attach(model, optimizer=optimizer, loss=criterion, store=path, **options):
        for _ in range(200):
            at = torch.randint(len(x), (96,))
            one, two = (model(x[at] + 0.5 * torch.randn(96, 64)) for _ in range(2))
            side_by_side = isinstance(criterion, Together)
            optimizer.zero_grad()
            (criterion(torch.cat([one, two], 1), y[at]) if side_by_side else criterion(one, two)).backward()
            optimizer.step()
    return tdbg.run_rules(path, ["lost_dimensions"])


@pytest.mark.parametrize("loss", [Twinned, Together])
def test_dimensions_that_nothing_keeps_apart_are_lost(tmp_path: Path, loss: type) -> None:
    (finding,) = coded(tmp_path / "run", loss(0.0))
    assert finding.tensor == f"loss/{loss.__name__}"
    assert finding.evidence["effective_rank"] < 2 < finding.evidence["effective_rank_first"]


@pytest.mark.parametrize("loss", [Twinned, Together])
def test_dimensions_that_are_kept_apart_stay(tmp_path: Path, loss: type) -> None:
    assert coded(tmp_path / "run", loss(0.02)) == []


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, 1),
        ({"labels": 3.0}, 0),  # a line tells them
        ({"labels": 8.0}, 1),
        ({"target_rank": 6.0}, 0),  # predictions that begin with the mean
    ],
)
def test_what_needs_few_dimensions_is_left_alone(tmp_path: Path, facts: dict, found: int) -> None:
    made = Made(tmp_path / "run")
    for step in range(100):
        numbers = {
            "rank": 8.0 if step < 10 else 1.3 + 2.0 * 0.97**step,
            "kind": 0.0,
            "classes": 16.0,
            **facts,
        }
        made.step(step, {f"check/loss/Own/{name}": value for name, value in numbers.items()})
    assert len(made.check(LostDimensions())[0]) == found


def test_dimensions_that_come_back_are_left_alone(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(120):
        made.step(step, {"check/loss/Own/rank": 10.0 if step < 5 else 1.2 * 1.004**step})
    assert made.check(LostDimensions())[0] == []


def test_effective_rank_counts_axes_that_share_the_variance() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(20_000, 3)) @ np.linalg.qr(random.normal(size=(12, 12)))[0][:3]
    assert effective_rank(rows[:100]) == pytest.approx(3, rel=0.1)
    assert effective_rank(rows[:10].repeat(3, 0) * np.inf) is None
    assert effective_rank(np.ones((20, 12))) is None
    assert effective_rank(rows[:100, :4]) is None
