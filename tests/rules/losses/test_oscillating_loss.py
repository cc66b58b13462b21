from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import RuleStatus
from tdbg_lab.rules import OscillatingLoss, check_run
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path

RNG = np.random.default_rng(0)


def _made(path: Path, values: np.ndarray, **also: np.ndarray) -> list:
    made = Made(path)
    for step, value in enumerate(values):
        more = {f"optimizer/lr/{name}": rates[step] for name, rates in also.items()}
        made.step(step, {"loss/mse": value, **more})
    made.end()
    return made.check(OscillatingLoss())[0]


@pytest.mark.parametrize("rate", [0.5, 0.05])
def test_step_beyond_the_curvature_is_found(tmp_path: Path, rate: float) -> None:
    torch.manual_seed(0)
    data = load_diabetes()
    x = torch.tensor(data.data / data.data.std(0), dtype=torch.float32)
    y = torch.tensor((data.target - data.target.mean()) / data.target.std(), dtype=torch.float32)[:, None]
    model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))
    optimizer, criterion = torch.optim.SGD(model.parameters(), rate), nn.MSELoss()
    with tdbg.attach(
        model, optimizer=optimizer, loss=criterion, store=tmp_path / "run", save_every=10, profiler=False
    ) as handle:
        for _ in range(160):
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
    findings = check_run(handle.run_path, [OscillatingLoss()])[0]
    assert bool(findings) is (rate > 0.1)
    assert all(one.fix == {"setting": "learning_rate", "factor": 0.3} for one in findings)


@pytest.mark.parametrize(("period", "size", "fires"), [(2, 0.2, True), (8, 0.2, True), (8, 0.05, False)])
def test_period_and_size_of_the_swing(tmp_path: Path, period: int, size: float, fires: bool) -> None:  # noqa: FBT001
    swing = 1 + size * np.cos(2 * np.pi * np.arange(120) / period) + RNG.normal(0, 0.01, 120)
    findings = _made(tmp_path / "run", swing)
    assert [one.evidence["period_steps"] for one in findings] == ([period] if fires else [])


def _thrown_back(lengths: tuple[int, ...]) -> np.ndarray:
    """Falls to a tenth of 1.0 and jumps above it, after so many steps each time."""
    falls = [np.r_[np.geomspace(1.0, 0.1, count), 2.5] for count in lengths]
    return np.concatenate([*falls, *falls, *falls])


@pytest.mark.parametrize(
    ("lengths", "fires"), [((9, 16, 8, 13, 11), True), ((40,), False), ((4, 3, 5, 4), False)]
)
def test_loss_that_is_thrown_back_at_odd_times_is_found(
    tmp_path: Path, lengths: tuple[int, ...], *, fires: bool
) -> None:
    findings = _made(tmp_path / "run", _thrown_back(lengths * (1 if len(lengths) > 4 else 4)))
    thrown = [one for one in findings if "returns_count" in one.evidence]
    assert [one.evidence["returns_count"] >= 3 for one in thrown] == ([True] if fires else [])


def test_noise_that_reaches_the_beginning_is_not_thrown_back(tmp_path: Path) -> None:
    values = np.r_[np.ones(8), RNG.choice([0.3, 0.4, 0.6, 1.2], 400)]
    assert _made(tmp_path / "run", values) == []


@pytest.mark.parametrize("smooth", [0.0, 0.7])
def test_noise_has_no_period(tmp_path: Path, smooth: float) -> None:
    noise = RNG.normal(0, 0.3, 1000)
    for at in range(1, 1000):
        noise[at] += smooth * noise[at - 1]
    assert _made(tmp_path / "run", 2 + noise) == []


def test_swing_under_which_the_loss_falls_is_left_alone(tmp_path: Path) -> None:
    at = np.arange(120)
    assert _made(tmp_path / "run", np.exp(-at / 60) * (1 + 0.1 * np.cos(np.pi * at))) == []


def test_swing_of_the_learning_rate_is_left_alone(tmp_path: Path) -> None:
    swing = np.cos(2 * np.pi * np.arange(120) / 16)
    assert _made(tmp_path / "run", 1 + 0.3 * swing, **{"0": 0.1 * (1 + 0.5 * swing)}) == []


@pytest.mark.parametrize(("level", "found"), [(1.0, 1), (0.02, 0)])
def test_loss_around_zero_has_no_size_to_swing_by(tmp_path: Path, level: float, found: int) -> None:
    at = np.arange(120)
    assert len(_made(tmp_path / "run", level + 0.3 * np.cos(2 * np.pi * at / 8))) == found


def test_several_models_are_a_game(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(3):
        tensors = {"optimizer/lr/maker.0": 0.1, "optimizer/lr/judge.0": 0.1, "loss/bce": 1.0}
        made.step(step, tensors | {"maker.0.weight": np.ones((2, 2)), "judge.0.weight": np.ones((2, 2))})
    made.end()
    state = made.check(OscillatingLoss())[1]["oscillating_loss"]
    assert state.status is RuleStatus.NOT_APPLICABLE
    assert "in a game losses may swing" in state.reason


def test_window_of_one_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"oscillating_loss.window is 1"):
        OscillatingLoss(window=1)
