from __future__ import annotations

from types import SimpleNamespace

import pynvml
import pytest

from tdbg_lab.profiler.gpu import GpuProbe


class FakeNvml:
    """NVML with two devices, the second of which reports no power; same names as ``pynvml``."""

    NVML_TEMPERATURE_GPU = pynvml.NVML_TEMPERATURE_GPU
    NVMLError = pynvml.NVMLError
    NVMLError_NotSupported = pynvml.NVMLError_NotSupported
    NVMLError_FunctionNotFound = pynvml.NVMLError_FunctionNotFound
    NVML_CLOCK_SM = pynvml.NVML_CLOCK_SM

    def __init__(self, *, driver: bool = True, count: int = 2) -> None:
        self.driver = driver
        self.count = count
        self.open = 0
        self.lost = False
        self.power_calls: list[str] = []

    def nvmlInit(self) -> None:
        if not self.driver:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"handle{index}"

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> SimpleNamespace:
        if self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return SimpleNamespace(gpu=73, memory=20)

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> SimpleNamespace:
        return SimpleNamespace(total=80 * 2**30, free=60 * 2**30, used=20 * 2**30)

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        self.power_calls.append(handle)
        if handle == "handle1":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return 250_500

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        return 61

    def nvmlDeviceGetClockInfo(self, handle: str, clock: int) -> int:
        assert clock == pynvml.NVML_CLOCK_SM
        return 1410

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        if handle == "handle1":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return int(pynvml.nvmlClocksThrottleReasonHwThermalSlowdown | pynvml.nvmlClocksThrottleReasonGpuIdle)


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
