"""NVML without a GPU."""

from __future__ import annotations

from types import SimpleNamespace

import pynvml


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
        """Whether the devices have fallen off the bus."""
        self.forbidden: set[int] = set()
        """Indices of devices that we may not open."""
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
        if index in self.forbidden:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)
        return f"handle{index}"

    def nvmlDeviceGetName(self, handle: str) -> str:
        self._reach()
        return "Fake A100"

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> SimpleNamespace:
        self._reach()
        return SimpleNamespace(gpu=73, memory=20)

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> SimpleNamespace:
        self._reach()
        return SimpleNamespace(total=80 * 2**30, free=60 * 2**30, used=20 * 2**30)

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        self.power_calls.append(handle)
        self._reach()
        if handle == "handle1":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return 250_500

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        self._reach()
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        return 61

    def nvmlDeviceGetClockInfo(self, handle: str, clock: int) -> int:
        assert clock == pynvml.NVML_CLOCK_SM
        return 1410

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        if handle == "handle1":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return int(pynvml.nvmlClocksThrottleReasonHwThermalSlowdown | pynvml.nvmlClocksThrottleReasonGpuIdle)

    def _reach(self) -> None:
        if self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
