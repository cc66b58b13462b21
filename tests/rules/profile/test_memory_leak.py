from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.rules import MemoryLeak, check_run

from .recorded import Recorded, healthy

if TYPE_CHECKING:
    from tdbg_lab.records import Finding

LEAKING = Path(__file__).parent / "leaking.py"
MIB = 2**20


def train(path: Path, *kept: str) -> list[Finding]:
    """A few seconds of training in a process of its own: one that has run other tests has memory to reuse."""
    subprocess.run([sys.executable, LEAKING, path, *kept], check=True, timeout=240)
    return check_run(path, [MemoryLeak(warm_up_s=0.5, min_time_s=2.0, min_growth_mib=50)])[0]


def test_list_that_keeps_every_batch_is_a_leak(tmp_path: Path) -> None:
    (finding,) = train(tmp_path / "run", "keep")
    assert finding.message.startswith("Memory of the training process grows steadily, from")
    assert "an hour; at that rate it is full in" in finding.message
    assert finding.evidence["to_mib"] - finding.evidence["from_mib"] > 50
    assert finding.evidence["full_at_step"] > finding.step_last


def test_batches_that_are_let_go_are_none(tmp_path: Path) -> None:
    assert not train(tmp_path / "run")


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
