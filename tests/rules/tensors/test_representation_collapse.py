from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import RuleStatus
from tdbg_lab.rules import RepresentationCollapse, check_run
from tests.rules import nets
from tests.rules.made import Made
from tests.rules.raws import record

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("pull", "fires"), [(300.0, True), (0.0, False)])
def test_code_drawn_into_one_point_is_found(tmp_path: Path, pull: float, fires: bool) -> None:  # noqa: FBT001
    torch.manual_seed(0)
    encoder, decoder = nn.Linear(64, 8), nn.Linear(8, 64)
    model = nn.Sequential(encoder, decoder)
    optimizer, criterion = torch.optim.Adam(model.parameters(), 1e-2), nn.MSELoss()
    batches = nets.digits(32, image=False)
    with tdbg.attach(
        model, optimizer=optimizer, loss=criterion, store=tmp_path / "run", save_every=5, profiler=False
    ) as handle:
        for _ in range(80):
            x, _ = next(batches)
            code = encoder(x)
            optimizer.zero_grad()
            (criterion(decoder(code), x) + pull * code.var(0).sum()).backward()
            handle.record("embedding", code)
            optimizer.step()
    findings = check_run(handle.run_path, [RepresentationCollapse(loss_low=0, min_spread=0.2)])[0]
    assert bool({one.tensor for one in findings} & {"embedding"}) is fires


@pytest.mark.parametrize(("second", "fires"), [(0.2, True), (0.5, False)])
def test_effective_rank_at_its_limit(tmp_path: Path, second: float, fires: bool) -> None:  # noqa: FBT001
    made = Made(tmp_path / "run")
    random = np.random.default_rng(0)
    for step in range(12):
        code = random.normal(size=(64, 8)) * np.r_[1.0, second, np.zeros(6)]
        record(made, step, {"embedding": code})
    made.end()
    findings = made.check(RepresentationCollapse())[0]
    assert [one.tensor for one in findings] == ["embedding"] * fires


def test_says_that_nothing_was_recorded(tmp_path: Path) -> None:
    made = Made(tmp_path / "run").step(0, {"loss/a": 1.0})
    made.end()
    state = made.check(RepresentationCollapse())[1]["representation_collapse"]
    assert state.status is RuleStatus.NOT_APPLICABLE
    assert "were recorded so far" in state.reason


def test_rank_below_1_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"representation_collapse.min_rank is 0.5"):
        RepresentationCollapse(min_rank=0.5)


def test_batches_without_a_sample_say_nothing(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    for step in range(12):
        made.step(step, {"loss/x": 1.0})
        record(made, step, {"embedding": np.zeros((0, 8), np.float32)})
    made.end()
    assert made.check(RepresentationCollapse())[0] == []
