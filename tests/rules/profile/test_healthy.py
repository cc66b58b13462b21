"""Healthy trainings, with all that is recorded by default: the rules of the profiler keep silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tdbg_lab as tdbg
from tdbg_lab.rules import check_run, list_rules
from tdbg_lab.rules.registry import DEFAULT

from .profiled import add_profile, item, kernel, step_events
from .recorded import Recorded, healthy

if TYPE_CHECKING:
    from pathlib import Path

OURS = [rule.name for rule in list_rules() if rule.group == "profile" and rule.name in DEFAULT]


def test_default_rules_have_a_group_for_the_profiler() -> None:
    assert len(OURS) == 16


@pytest.mark.parametrize("save_every", [1, 50])
def test_a_usual_training_is_silent(tmp_path: Path, save_every: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = load_digits()
    data = TensorDataset(torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target))
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    with tdbg.attach(
        model, optimizer=optimizer, store=tmp_path / "run", save_every=save_every, strict=True
    ) as handle:
        for _ in range(6):
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
            with torch.no_grad(), handle.mode("eval"):
                model(data.tensors[0])
    found, states = check_run(handle.run_path, OURS, strict=True)
    loud = [one.message for one in found if one.severity != "notice"]
    assert not loud
    assert {state.rule for state in states} == set(OURS)


def busy_step(step: int) -> list[dict[str, object]]:
    """A step of 400 ms: 190 kernels one after the other, and one look at the loss while they run."""
    at, events = step * 400_000, []
    for place in range(190):
        events += kernel(at + 2000 * place, 2000, 1000 * step + place + 1)
    return [*step_events(step, at, 399_000), *events, *item(at + 370_000, 5000, 1000 * step + 500)]


def test_a_healthy_day_of_a_busy_gpu_is_silent(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "run").steps(healthy(300, 10)).loader(num_workers=4, pin_memory=True)
    moments = 240
    made.load(
        {
            ("cpu", "cpu"): [30.0] * moments,
            **{("cpu", f"cpu{core}"): [30.0 + 10 * core] * moments for core in range(4)},
            ("iowait", "cpu"): [1.0] * moments,
            ("memory", "memory"): [40.0] * moments,
            ("memory_bytes", "memory"): [4e9] * moments,
            ("process_memory_bytes", "process"): [2e9 + 1e6 * (moment % 7) for moment in range(moments)],
            ("gpu", "gpu0"): [95.0 - moment % 5 for moment in range(moments)],
            ("gpu", "gpu1"): [96.0 - moment % 4 for moment in range(moments)],
            ("gpu_memory", "gpu0"): [80.0] * moments,
            ("gpu_memory", "gpu1"): [80.0] * moments,
            ("gpu_memory_bytes", "gpu0"): [6e10] * moments,
            ("gpu_temperature_c", "gpu0"): [70.0] * moments,
            ("gpu_throttled_thermal", "gpu0"): [0.0] * moments,
        }
    )
    add_profile(made, [busy_step(step) for step in range(3)])
    found, states = made.check(*OURS)
    assert not [one.message for one in found]
    out = {rule for rule, state in states.items() if state.status == "not_applicable"}
    assert out == {"straggler"}
