"""Rules on what the profiler of SageMaker Debugger wrote: system metrics and timelines, no tensors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tdbg_lab.rules import check_run
from tdbg_lab.smdebug.rules import builtin_rule

RECORDED = Path(__file__).parents[2] / "data" / "smdebug" / "profiler"


def write(root: Path, *, gpu: float, core: float, moments: int = 60) -> Path:
    """System metrics as SageMaker writes them: the readings of one moment are some milliseconds apart."""
    folder = root / "system" / "incremental" / "2026112111"
    folder.mkdir(parents=True)
    readings = (
        ("cpu0", "cpu", "CPUUtilization", 20.0),
        ("cpu1", "cpu", "CPUUtilization", core),
        ("gpu0", "gpu", "GPUUtilization", gpu),
        ("gpu0", "gpu", "GPUMemoryUtilization", 10.0),
    )
    lines = [
        {
            "Type": kind,
            "Name": name,
            "Dimension": dimension,
            "Value": value,
            "NodeId": "algo-1",
            "Timestamp": 1_600_000_000 + moment / 2 + place * 0.002,
        }
        for moment in range(moments)
        for place, (name, kind, dimension, value) in enumerate(readings)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "1600000000.algo-1.json").write_text(text)
    return root


@pytest.mark.parametrize(("gpu", "found"), [(5.0, {"cpu_bottleneck", "low_gpu_utilization"}), (95.0, set())])
def test_system_metrics_are_judged_by_the_documented_conditions(
    tmp_path: Path, gpu: float, found: set[str]
) -> None:
    path = write(tmp_path / "job", gpu=gpu, core=99.0)
    given = {"patience": "50", "window": "50"}
    rules = [
        builtin_rule("CPUBottleneck", {"patience": "50"}),
        builtin_rule("LowGPUUtilization", given),
        builtin_rule("BatchSize", given),
        builtin_rule("GPUMemoryIncrease", {"patience": "50"}),
    ]
    findings, states = check_run(path, rules, strict=True)
    assert {one.rule for one in findings} == found
    assert all(state.status != "not_applicable" for state in states)


def test_no_rule_fails_on_a_profile_without_tensors(tmp_path: Path) -> None:
    path = write(tmp_path / "job", gpu=50.0, core=50.0)
    _, states = check_run(path, "default")
    assert [state.reason for state in states if state.status == "error"] == []


@pytest.mark.skipif(not RECORDED.is_dir(), reason="no recorded profile")
def test_recorded_timelines_are_judged() -> None:
    _, states = check_run(RECORDED, "default")
    assert [state.reason for state in states if state.status == "error"] == []
