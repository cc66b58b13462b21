from __future__ import annotations

import pynvml
import pytest

from tdbg_lab.profiler.gpu import GpuProbe
from tests.profiler.nvml import FakeNvml


def test_fake_has_the_call_surface_of_the_library() -> None:
    names = [name for name in dir(FakeNvml) if name.startswith(("nvml", "NVML"))]
    assert len(names) >= 10
    assert all(hasattr(pynvml, name) for name in names)


def test_gpu_metrics_have_documented_units() -> None:
    probe = GpuProbe.open(FakeNvml())
    assert probe is not None
    values = {(r.metric, r.device): r.value for r in probe.read()}
    assert values["gpu", "gpu0"] == 73
    assert values["gpu_memory", "gpu1"] == 25
    assert values["gpu_memory_bytes", "gpu0"] == 20 * 2**30
    assert values["gpu_power_w", "gpu0"] == 250.5
    assert values["gpu_temperature_c", "gpu1"] == 61
    assert values["gpu_clock_mhz", "gpu1"] == 1410
    assert values["gpu_throttled_thermal", "gpu0"] == 100
    assert values["gpu_throttled_power", "gpu0"] == 0
    assert ("gpu_power_w", "gpu1") not in values
    assert ("gpu_throttled_thermal", "gpu1") not in values


def test_unsupported_metric_is_asked_for_once() -> None:
    nvml = FakeNvml()
    probe = GpuProbe.open(nvml)
    assert probe is not None
    for _ in range(3):
        list(probe.read())
    assert nvml.power_calls.count("handle1") == 1
    assert nvml.power_calls.count("handle0") == 3


def test_lost_device_is_asked_again() -> None:
    nvml = FakeNvml(count=1)
    probe = GpuProbe.open(nvml)
    assert probe is not None
    nvml.lost = True
    assert "gpu" not in {r.metric for r in probe.read()}
    nvml.lost = False
    assert "gpu" in {r.metric for r in probe.read()}


def test_forbidden_device_does_not_hide_the_others() -> None:
    nvml = FakeNvml()
    nvml.forbidden = {0}
    probe = GpuProbe.open(nvml)
    assert probe is not None
    assert probe.devices == ["gpu1"]
    nvml.forbidden = {0, 1}
    assert GpuProbe.open(nvml) is None


def test_names_and_memory_are_told_where_nvml_tells_them() -> None:
    nvml = FakeNvml()
    probe = GpuProbe.open(nvml)
    assert probe is not None
    assert [probe.name(device) for device in probe.devices] == ["Fake A100", "Fake A100"]
    assert probe.memory_total("gpu1") == 80 * 2**30
    nvml.lost = True
    assert probe.name("gpu0") == ""
    assert probe.memory_total("gpu0") is None


@pytest.mark.parametrize("nvml", [FakeNvml(driver=False), FakeNvml(count=0)], ids=["no driver", "no device"])
def test_machine_without_gpu_has_no_probe(nvml: FakeNvml) -> None:
    assert GpuProbe.open(nvml) is None


def test_close_shuts_the_library_down() -> None:
    nvml = FakeNvml()
    probe = GpuProbe.open(nvml)
    assert probe is not None
    probe.close()
    assert nvml.open == 0


@pytest.mark.gpu
def test_real_gpu_is_read_when_there_is_one() -> None:
    probe = GpuProbe.open()
    if probe is None:
        pytest.skip("no GPU here")
    values = {r.metric: r.value for r in probe.read()}
    assert 0 <= values["gpu"] <= 100
    assert values["gpu_memory_bytes"] > 0
    assert 0 < values["gpu_power_w"] < 2000
    assert 5 < values["gpu_temperature_c"] < 120
    probe.close()
