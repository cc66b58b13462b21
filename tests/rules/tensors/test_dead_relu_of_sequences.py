"""Channels of a convolution over a sequence are the units of what comes behind it, however it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tdbg_lab as tdbg
from tdbg_lab.records import Severity

if TYPE_CHECKING:
    from pathlib import Path

CHANNELS, PLACES, CLASSES = 24, 10, 3


class Body(nn.Module):
    """A convolution over a sequence, a norm, a rectifier and a dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv1d(2, CHANNELS, 3, padding=1), nn.BatchNorm1d(CHANNELS)
        self.act, self.drop = nn.ReLU(), nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(self.act(self.norm(self.conv(x))))


class Functions(Body):
    """The same with functions."""

    def __init__(self) -> None:
        super().__init__()
        del self.act, self.drop

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(self.conv(x)))


class Reader(nn.Module):
    """Classes of the mean over the places."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(CHANNELS, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).mean(2))


class Mixed(nn.Module):
    """Features last: places are no units."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.act = nn.Linear(2, CHANNELS), nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.mix(x.transpose(1, 2))).transpose(1, 2)


def trained(path: Path, body: nn.Module, kill: nn.Module | None = None) -> Path:
    """120 steps over waves of three lengths; all units of `kill` but one are pushed below zero at step 40."""
    torch.manual_seed(0)
    model = Reader(body)
    optimizer, criterion = torch.optim.Adam(model.parameters(), 1e-2), nn.CrossEntropyLoss()
    places = torch.arange(PLACES)
    options = {"profiler": False, "rules": "none", "save_every": 2, "strict": True}
    with tdbg.attach(model, optimizer=optimizer, loss=criterion, store=path, **options):
        for step in range(120):
            if kill is not None and step == 40:
                with torch.no_grad():
                    kill.bias[1:] = -50.0
            y = torch.randint(CLASSES, (48,))
            wave = torch.sin(places * (1 + y)[:, None] + 6 * torch.rand(48, 1))
            x = torch.stack([wave, wave.roll(1, 1)], 1) + 0.1 * torch.randn(48, 2, PLACES)
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
    return path


@pytest.mark.parametrize(
    ("body", "names"),
    [(Body, ("act", "drop")), (Functions, ("relu_0",)), (Mixed, ("act",))],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_units_are_channels_and_healthy_ones_are_left_alone(tmp_path: Path, body: type, names: tuple) -> None:
    run = tdbg.open_run(trained(tmp_path / "run", body()))
    for name in names:
        assert len(run.tensor(f"activation/body.{name}").stats(10).channel_zero_frac) == CHANNELS
    found = tdbg.run_rules(run, ["dead_relu", "dead_units"])
    assert [one.message for one in found if one.severity is not Severity.NOTICE] == []


@pytest.mark.parametrize("body", [Body, Functions])
def test_channels_that_never_fire_are_dead(tmp_path: Path, body: type) -> None:
    model = body()
    (finding,) = tdbg.run_rules(trained(tmp_path / "run", model, model.norm), ["dead_relu"])
    assert finding.severity is Severity.CRITICAL
    assert (finding.evidence["dead_units_count"], finding.evidence["units_count"]) == (CHANNELS - 1, CHANNELS)
    assert 40 <= finding.step_first <= 60
