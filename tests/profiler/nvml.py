"""NVML without a GPU."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pynvml


class FakeNvml:
    """NVML with two devices, the second without power and links; same names as ``pynvml``."""

    NVML_TEMPERATURE_GPU = pynvml.NVML_TEMPERATURE_GPU
    NVMLError = pynvml.NVMLError
    NVMLError_NotSupported = pynvml.NVMLError_NotSupported
    NVMLError_FunctionNotFound = pynvml.NVMLError_FunctionNotFound
    NVML_CLOCK_SM = pynvml.NVML_CLOCK_SM
    NVML_CLOCK_MEM = pynvml.NVML_CLOCK_MEM
    NVML_PCIE_UTIL_RX_BYTES = pynvml.NVML_PCIE_UTIL_RX_BYTES
    NVML_PCIE_UTIL_TX_BYTES = pynvml.NVML_PCIE_UTIL_TX_BYTES
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX
    NVML_SUCCESS = pynvml.NVML_SUCCESS
    NVML_DEVICE_MIG_ENABLE = pynvml.NVML_DEVICE_MIG_ENABLE
    NVML_ERROR_NO_PERMISSION = pynvml.NVML_ERROR_NO_PERMISSION
    NVML_ERROR_LIBRARY_NOT_FOUND = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
    NVML_ERROR_DRIVER_NOT_LOADED = pynvml.NVML_ERROR_DRIVER_NOT_LOADED

    def __init__(self, *, driver: bool = True, count: int = 2, divided: bool = False) -> None:
        self.driver = driver
        self.count = count
        self.open = 0
        self.lost = False
        """Whether the devices have fallen off the bus."""
        self.forbidden: set[int] = set()
        """Indices of devices that we may not open."""
        self.power_calls: list[str] = []
        self.divided = divided
        """Whether device 0 is divided into parts 0 and 2 (MIG)."""
        self.error: int | None = None
        """Why the library does not open."""
        self.hung: set[str] = set()
        """Handles of devices whose driver hangs, until `go_on`."""
        self.go_on = threading.Event()
        self.processes: list[SimpleNamespace] = []
        self.link_kib = 0

    def nvmlInit(self) -> None:
        if "driver" in self.hung:
            self.go_on.wait(60)
        if self.error is not None:
            raise pynvml.NVMLError(self.error)
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
        self._reach(handle)
        if self.divided and handle.startswith("handle0"):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
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
        return {pynvml.NVML_CLOCK_SM: 1410, pynvml.NVML_CLOCK_MEM: 2619}[clock]

    def nvmlDeviceGetPcieThroughput(self, handle: str, counter: int) -> int:
        return {pynvml.NVML_PCIE_UTIL_RX_BYTES: 3000, pynvml.NVML_PCIE_UTIL_TX_BYTES: 50}[counter]

    def nvmlDeviceGetFieldValues(self, handle: str, fields: list[tuple[int, int]]) -> list[SimpleNamespace]:
        assert all(scope == 2**32 - 1 for _, scope in fields), "all links together"
        if handle == "handle1":
            return [SimpleNamespace(nvmlReturn=pynvml.NVML_ERROR_NOT_SUPPORTED) for _ in fields]
        self.link_kib += 1024
        value = SimpleNamespace(ullVal=self.link_kib)
        return [SimpleNamespace(nvmlReturn=pynvml.NVML_SUCCESS, value=value) for _ in fields]

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        if handle == "handle1":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)
        return self.processes

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        if not self.divided:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return [pynvml.NVML_DEVICE_MIG_ENABLE if handle == "handle0" else 0, 0]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: str) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: str, index: int) -> str:
        if index not in {0, 2}:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return f"{handle}/{index}"

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        if handle == "handle1":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return int(pynvml.nvmlClocksThrottleReasonHwThermalSlowdown | pynvml.nvmlClocksThrottleReasonGpuIdle)

    def _reach(self, handle: str = "") -> None:
        if handle in self.hung:
            self.go_on.wait(60)
        if self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
