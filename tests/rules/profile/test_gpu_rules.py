"""Rules on GPUs, on made load: each at its boundary, in both settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.rules import (
    BatchSize,
    CPUBottleneck,
    GpuIdleGaps,
    GPUMemoryIncrease,
    IOBottleneck,
    LoadBalancing,
    LowGPUUtilization,
    ThermalThrottling,
)
from tdbg_lab.rules.profile.load_balancing import distance

from .recorded import USUAL, Recorded, healthy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tdbg_lab.rules import Rule

Series = dict[tuple[str, str], list[float]]
STEP_S = sum(USUAL.values()) / 1e3


def machine(n: int, **series: Sequence[float] | float) -> Series:
    """A machine with two cores; values by ``metric_on_device``, whole series or one for all moments."""
    given: dict[str, Sequence[float] | float] = {
        "cpu_on_cpu": 20.0,
        "cpu_on_cpu0": 20.0,
        "cpu_on_cpu1": 20.0,
        "gpu_on_gpu0": 90.0,
        **series,
    }
    return {
        tuple(name.split("_on_")): [float(value)] * n if isinstance(value, (int, float)) else list(value)  # type: ignore[misc]
        for name, value in given.items()
    }


def run_of(path: Path, series: Series) -> Recorded:
    """A run that trains for as long as there are samples."""
    n = len(next(iter(series.values())))
    return Recorded(path).steps(healthy(int(0.05 * (n + 2) / STEP_S), 10)).load(series)


def short(path: Path, series: Series) -> Recorded:
    """A run with few, long steps: for classic conditions, which look at samples only."""
    n = len(next(iter(series.values())))
    return Recorded(path).steps([{"forward": 500.0 * (n + 2) / 8}] * 10).load(series)


def mix(n: int, bad: int, good: float, other: float) -> list[float]:
    """`bad` values of `other` spread over `n`."""
    values = np.full(n, good)
    values[np.linspace(0, n - 1, bad).astype(int)] = other
    return values.tolist()


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        (CPUBottleneck(classic=True, patience=20), {"cpu_on_cpu1": 95.0}),
        (IOBottleneck(classic=True, patience=20), {"iowait_on_cpu": 30.0}),
    ],
)
@pytest.mark.parametrize(("bad", "found"), [(20, False), (21, True)])
def test_classic_bottleneck_is_more_than_half_of_the_moments(
    tmp_path: Path, rule: Rule, kind: dict[str, float], bad: int, *, found: bool
) -> None:
    series = machine(40, gpu_on_gpu0=[90.0] * (40 - bad) + [9.0] * bad, **kind)
    finding = short(tmp_path / "run", series).find(rule)
    assert (finding is not None) is found
    if finding is not None:
        assert finding.evidence["share_percent"] == pytest.approx(52.5)


@pytest.mark.parametrize(("n", "found"), [(20, False), (21, True)])
def test_classic_bottleneck_waits_for_its_patience(tmp_path: Path, n: int, *, found: bool) -> None:
    series = machine(n, gpu_on_gpu0=5.0, cpu_on_cpu1=95.0)
    assert (
        short(tmp_path / "run", series).find(CPUBottleneck(classic=True, patience=20)) is not None
    ) is found


def test_cpu_bottleneck_says_what_could_be_saved(tmp_path: Path) -> None:
    series = machine(80, gpu_on_gpu0=mix(80, 60, 90.0, 4.0), cpu_on_cpu1=98.0)
    finding = run_of(tmp_path / "run", series).find(CPUBottleneck())
    assert finding is not None
    assert "up to 7" in finding.message
    assert 70 < finding.evidence["gain_percent"] < 80
    quiet = machine(80, gpu_on_gpu0=mix(80, 60, 90.0, 4.0), cpu_on_cpu1=60.0)
    assert run_of(tmp_path / "quiet", quiet).find(CPUBottleneck()) is None


def test_io_bottleneck_without_a_gpu_wants_steps_that_wait(tmp_path: Path) -> None:
    load = {("cpu", "cpu"): [20.0] * 80, ("cpu", "cpu0"): [20.0] * 80, ("iowait", "cpu"): [80.0] * 80}
    starved = Recorded(tmp_path / "run").steps([{**USUAL, "data": 40.0}] * 530).load(load)
    finding = starved.find(IOBottleneck())
    assert finding is not None
    assert "steps wait for data (51% of their time)" in finding.message
    assert Recorded(tmp_path / "fed").steps(healthy(101, 10)).load(load).find(IOBottleneck()) is None


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([69.0] * 30, "under-used"),
        ([71.0] * 30, None),
        ([9.0, 71.0, 71.0] * 10, "up and down"),
        ([10.0, 71.0, 71.0] * 10, None),
        ([0.0] * 30, "not used at all"),
    ],
)
def test_classic_low_utilization_at_its_boundaries(
    tmp_path: Path, values: list[float], text: str | None
) -> None:
    series = machine(30, gpu_on_gpu0=values)
    finding = short(tmp_path / "run", series).find(LowGPUUtilization(classic=True, patience=20))
    assert (text is None) == (finding is None)
    if finding is not None and text is not None:
        assert text in finding.message


def test_low_utilization_is_a_warning_only_when_it_is_very_low(tmp_path: Path) -> None:
    loads = {60.0: "notice", 30.0: "warning"}
    for load, severity in loads.items():
        made = run_of(tmp_path / severity, machine(130, gpu_on_gpu0=load))
        finding = made.find(LowGPUUtilization())
        assert finding is not None
        assert finding.severity == severity


@pytest.mark.parametrize(
    ("cpu", "gpu", "memory", "found"),
    [(69, 69, 69, True), (70, 69, 69, False), (69, 70, 69, False), (69, 69, 70, False)],
)
def test_classic_batch_size_wants_room_everywhere(
    tmp_path: Path, cpu: float, gpu: float, memory: float, *, found: bool
) -> None:
    series = machine(30, cpu_on_cpu=cpu, gpu_on_gpu0=gpu, gpu_memory_on_gpu0=memory)
    rule = BatchSize(classic=True, window=20, patience=25)
    assert (short(tmp_path / "run", series).find(rule) is not None) is found


def test_batch_size_says_how_much_larger(tmp_path: Path) -> None:
    series = machine(250, gpu_on_gpu0=42.5, gpu_memory_on_gpu0=20.0)
    finding = run_of(tmp_path / "run", series).loader(batch_size=32).find(BatchSize())
    assert finding is not None
    assert finding.severity == "notice"
    assert "batches of about 64 instead of 32" in finding.message


@pytest.mark.parametrize(("rise", "found"), [(50.0, False), (51.0, True)])
def test_classic_memory_increase_compares_moving_averages(
    tmp_path: Path, rise: float, *, found: bool
) -> None:
    series = machine(31, gpu_memory_on_gpu0=[20.0] * 30 + [20.0 + rise])
    rule = GPUMemoryIncrease(classic=True, patience=20)
    assert (short(tmp_path / "run", series).find(rule) is not None) is found


def test_memory_that_went_up_and_stays_is_told(tmp_path: Path) -> None:
    rule = GPUMemoryIncrease(warm_up_s=10, before=60)
    up = machine(140, gpu_memory_on_gpu0=[40.0] * 120 + [93.0] * 20)
    finding = run_of(tmp_path / "up", up).find(rule)
    assert finding is not None
    assert finding.severity == "warning"
    assert finding.evidence["increase_points"] == pytest.approx(53)
    swinging = machine(140, gpu_memory_on_gpu0=[40.0, 60.0] * 70)
    assert run_of(tmp_path / "swinging", swinging).find(rule) is None


def test_distance_of_loads_is_that_of_jensen_and_shannon() -> None:
    low, high = np.full(50, 10.0), np.full(50, 90.0)
    assert distance(low, low) == 0
    assert distance(low, high) == pytest.approx(np.sqrt(np.log(2)))
    half = np.r_[low[:25], high[:25]]
    scipy = pytest.importorskip("scipy.spatial.distance")
    assert distance(low, half) == pytest.approx(scipy.jensenshannon([1, 0], [0.5, 0.5]))


def test_unequal_gpus_are_told_with_the_gain(tmp_path: Path) -> None:
    series = machine(130, gpu_on_gpu0=90.0, gpu_on_gpu1=30.0)
    finding = run_of(tmp_path / "run", series).find(LoadBalancing())
    assert finding is not None
    assert finding.evidence["gain_percent"] == pytest.approx(100 / 3)
    near = machine(130, gpu_on_gpu0=90.0, gpu_on_gpu1=85.0)
    assert run_of(tmp_path / "near", near).find(LoadBalancing()) is None
    classic = LoadBalancing(classic=True, patience=100)
    assert short(tmp_path / "classic", near).find(classic) is not None


@pytest.mark.parametrize(("hot", "found"), [(2, False), (3, True)])
def test_throttling_counts_from_a_tenth_of_the_time(tmp_path: Path, hot: int, *, found: bool) -> None:
    series = machine(
        25,
        gpu_throttled_thermal_on_gpu0=[0.0] * (25 - hot) + [100.0] * hot,
        gpu_temperature_c_on_gpu0=88.0,
        gpu_clock_mhz_on_gpu0=[1980.0] * 5 + [990.0] * 20,
    )
    finding = run_of(tmp_path / "run", series).find(ThermalThrottling())
    assert (finding is not None) is found
    if finding is not None:
        assert "up to 88 °C" in finding.message
        assert finding.evidence["gain_percent"] == pytest.approx(50)


def test_heat_counts_where_the_driver_gives_no_reasons(tmp_path: Path) -> None:
    series = machine(25, gpu_temperature_c_on_gpu0=91.0)
    assert run_of(tmp_path / "run", series).find(ThermalThrottling()) is not None


def test_idle_gaps_name_the_phase_they_fall_in(tmp_path: Path) -> None:
    """Every ten seconds, two of them are an evaluation during which the GPU has nothing to do."""
    steps: list[dict[str, float]] = []
    for _ in range(10):
        steps += [{"data": 100.0, "forward": 1500.0, "backward": 3000.0, "optimizer": 2400.0}]
        steps += [{"checkpoint": 3000.0, "data": 100.0, "forward": 400.0}]
    at_s = (np.arange(1, 201) * 0.5) % 10.5
    made = Recorded(tmp_path / "run").steps(steps)
    values = np.where((at_s > 7.4) & (at_s <= 10.1), 0.0, 95.0)
    finding = made.load(machine(200, gpu_on_gpu0=values.tolist())).find(GpuIdleGaps())
    assert finding is not None
    assert finding.evidence["phase"] == "checkpoint"
    assert finding.evidence["phase_share_percent"] > 80
    assert 20 < finding.evidence["idle_percent"] < 32
    busy = Recorded(tmp_path / "busy").steps(steps).load(machine(200))
    assert busy.find(GpuIdleGaps()) is None


RULES: list[Any] = [
    BatchSize,
    CPUBottleneck,
    GpuIdleGaps,
    GPUMemoryIncrease,
    LoadBalancing,
    LowGPUUtilization,
    ThermalThrottling,
]


@pytest.mark.parametrize("rule", RULES)
def test_not_applicable_without_a_gpu(tmp_path: Path, rule: type[Rule]) -> None:
    made = Recorded(tmp_path / "run").steps(healthy(20)).load({("cpu", "cpu"): [5.0] * 8})
    assert made.why_not(rule()) == "No GPU was found on the machines of this run: NVML sees none."


def test_not_applicable_without_samples_or_a_second_gpu(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "unsampled").steps(healthy(20))
    assert made.why_not(BatchSize()) == (
        "The load of the machine was not sampled so far; attach(..., profiler=True), the default, does."
    )
    made = Recorded(tmp_path / "one").steps(healthy(20)).load(machine(8))
    assert made.why_not(LoadBalancing()) == "No machine of this run has more than one GPU."
    made = Recorded(tmp_path / "io").steps(healthy(20)).load(machine(8))
    assert made.why_not(IOBottleneck()).startswith("No I/O wait was sampled so far")


@pytest.mark.parametrize(
    ("rule", "given", "text"),
    [
        (BatchSize, {"gpu_threshold_p95": 101}, "batch_size.gpu_threshold_p95 is 101"),
        (CPUBottleneck, {"threshold": -1}, "cpu_bottleneck.threshold is -1"),
        (GpuIdleGaps, {"max_idle": 0}, "gpu_idle_gaps.max_idle is 0"),
        (GPUMemoryIncrease, {"increase": 0}, "gpu_memory_increase.increase is 0"),
        (IOBottleneck, {"io_threshold": 200}, "io_bottleneck.io_threshold is 200"),
        (LoadBalancing, {"threshold": 2.0}, "load_balancing.threshold is 2.0"),
        (LowGPUUtilization, {"window": 0}, "low_gpu_utilization.window is 0"),
        (ThermalThrottling, {"max_share": 1.0}, "thermal_throttling.max_share is 1.0"),
    ],
)
def test_bad_thresholds_are_refused(rule: Any, given: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        rule(**given)
