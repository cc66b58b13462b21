from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.capture import companions
from tdbg_lab.errors import ConfigError
from tdbg_lab.rules import MemoryLeak, check_run

from .recorded import Recorded, healthy

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.records import Finding

MIB = 2**20


def train(path: Path, monkeypatch: pytest.MonkeyPatch, *, leaks: bool) -> list[Finding]:
    """A few seconds of training, whose memory is sampled often."""
    start = companions.start_sampler
    monkeypatch.setattr(
        companions, "start_sampler", lambda run, *, rank=0: start(run, rank=rank, interval_s=0.05)
    )
    torch.set_num_threads(1)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    kept = []
    with tdbg.attach(model, optimizer=optimizer, store=path, strict=True) as handle:
        run = tdbg.open_run(handle.run_path)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            optimizer.zero_grad()
            output = model(torch.ones(3, 4))
            batch = np.ones(2 * MIB, np.uint8)
            if leaks:
                kept.append(batch)
            output.sum().backward()
            optimizer.step()
            time.sleep(0.02)
            if handle.step % 20 == 0:
                run.refresh()
                if run.samples(metrics=("process_memory_bytes",))["time_ns"].nunique() > 90:
                    break
    return check_run(handle.run_path, [MemoryLeak(warm_up_s=0.5, min_time_s=2.0, min_growth_mib=50)])[0]


def test_list_that_keeps_every_batch_is_a_leak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (finding,) = train(tmp_path / "run", monkeypatch, leaks=True)
    assert finding.message.startswith("Memory of the training process grows steadily, from")
    assert "an hour; at that rate it is full in" in finding.message
    assert finding.evidence["to_mib"] - finding.evidence["from_mib"] > 50
    assert finding.evidence["full_at_step"] > finding.step_last


def test_batches_that_are_let_go_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not train(tmp_path / "run", monkeypatch, leaks=False)


N = 1200


def made(path: Path, used: np.ndarray, *, gpu: bool = False) -> Finding | None:
    """Ten minutes with this much memory in use, of 100 GiB."""
    metric, device = ("gpu_memory", "gpu0") if gpu else ("memory", "memory")
    own = ("gpu_memory_bytes", "gpu0") if gpu else ("process_memory_bytes", "process")
    load = {
        (f"{metric}_bytes", device): used.tolist(),
        (metric, device): (used / (1024 * MIB)).tolist(),
        own: used.tolist(),
    }
    return Recorded(path).steps(healthy(305, 50)).load(load).find(MemoryLeak())


@pytest.mark.parametrize("gpu", [False, True])
def test_time_until_the_memory_is_full(tmp_path: Path, *, gpu: bool) -> None:
    used = np.linspace(10, 20, N) * 1024 * MIB
    finding = made(tmp_path / "run", used, gpu=gpu)
    assert finding is not None
    assert finding.evidence["full_in_h"] == pytest.approx(80 / 60, rel=0.05)
    assert finding.severity == "warning"
    assert ("gpu0" in finding.message) is gpu


@pytest.mark.parametrize(
    "gib",
    [
        np.full(N, 10.0),
        10 + np.arange(N) % 100 / 20,
        10 + 5 * (1 - np.exp(-np.arange(N) / 150)),
        10 + 5 * (np.arange(N) > 600),
        10 + 0.5 * np.linspace(0, 1, N),
    ],
    ids=["constant", "taken and given back", "a cache that fills", "one step up", "little"],
)
def test_no_leak(tmp_path: Path, gib: np.ndarray) -> None:
    assert made(tmp_path / "run", gib * 1024 * MIB) is None


def test_slow_growth_is_a_notice(tmp_path: Path) -> None:
    used = np.linspace(1, 1.2, N) * 1024 * MIB
    finding = made(tmp_path / "run", used)
    assert finding is not None
    assert finding.severity == "notice"


def test_not_applicable_without_memory(tmp_path: Path) -> None:
    reason = Recorded(tmp_path / "run").steps(healthy(20)).why_not(MemoryLeak())
    assert reason == "No memory was sampled so far; attach(..., profiler=True), the default, does."


def test_bad_thresholds_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"memory_leak.soon_h is 0"):
        MemoryLeak(soon_h=0)
