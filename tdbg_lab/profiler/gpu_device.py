"""One GPU, or one part of a divided one, read through NVML."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tdbg_lab.profiler.probe import Rate, Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["GpuDevice"]

log = logging.getLogger(__name__)

_THERMAL = 0x20 | 0x40
"""NVML's reasons for a lowered clock: software and hardware thermal slowdown."""
_POWER = 0x04 | 0x80
"""Software power cap, hardware power brake."""
_ALL_LINKS = 2**32 - 1
_KIB = 1024.0


class GpuDevice:
    """Reads one device. Its calls may hang: NVML has no time limit.

    ========================  =================================================================
    metric                    value
    ========================  =================================================================
    gpu                       percent of the time some kernel ran
    gpu_memory                percent of the memory in use
    gpu_memory_bytes          bytes in use, by all processes
    gpu_power_w               W
    gpu_temperature_c         degrees Celsius
    gpu_clock_mhz             MHz of its processors
    gpu_memory_clock_mhz      MHz of its memory
    gpu_throttled_thermal     100 while the clock is lowered for heat, else 0
    gpu_throttled_power       100 while it is lowered to keep to its power, else 0
    gpu_pcie_recv, _sent      bytes per second over PCI Express
    gpu_nvlink_recv, _sent    bytes per second over NVLink, all links
    gpu_processes             processes that compute on it, of everybody
    gpu_process_memory_bytes  bytes in use by the processes of this training, where NVML tells
    ========================  =================================================================
    """

    def __init__(
        self, nvml: Any, name: str, handle: Any, *, own: Callable[[], Collection[int]], traffic: bool
    ) -> None:
        self._nvml = nvml
        self._device = name
        self._handle = handle
        self._own = own
        self._links = {"gpu_nvlink_recv": Rate(), "gpu_nvlink_sent": Rate()}
        self._readers: list[Callable[[], list[Reading]]] = [
            self._utilisation,
            self._memory,
            self._power,
            self._temperature,
            self._clock,
            self._memory_clock,
            self._throttling,
            *((self._pcie, self._nvlink, self._processes) if traffic else ()),
        ]

    def name(self) -> str:
        """What the maker calls it; empty where NVML does not say."""
        try:
            name = self._nvml.nvmlDeviceGetName(self._handle)
        except self._nvml.NVMLError as error:
            log.debug("No name of %s: %s", self._device, error)
            return ""
        return name.decode(errors="replace") if isinstance(name, bytes) else str(name)

    def memory_total(self) -> int | None:
        """Memory there is, bytes; None where NVML does not say."""
        try:
            return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).total)
        except self._nvml.NVMLError as error:
            log.debug("No memory of %s: %s", self._device, error)
            return None

    def read(self) -> list[Reading]:
        """Read every metric once; what is not supported is left out from then on."""
        return [reading for read in tuple(self._readers) for reading in self._guarded(read)]

    def _guarded(self, read: Callable[[], list[Reading]]) -> list[Reading]:
        try:
            return read()
        except (self._nvml.NVMLError_NotSupported, self._nvml.NVMLError_FunctionNotFound):
            self._readers.remove(read)
        except self._nvml.NVMLError as error:
            log.debug("No reading of %s: %s", self._device, error)
        return []

    def _reading(self, metric: str, value: float) -> Reading:
        return Reading(metric, self._device, float(value))

    def _utilisation(self) -> list[Reading]:
        return [self._reading("gpu", self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu)]

    def _memory(self) -> list[Reading]:
        memory = self._nvml.nvmlDeviceGetMemoryInfo(self._handle)
        return [
            self._reading("gpu_memory", 100.0 * memory.used / memory.total if memory.total else 0.0),
            self._reading("gpu_memory_bytes", memory.used),
        ]

    def _power(self) -> list[Reading]:
        return [self._reading("gpu_power_w", self._nvml.nvmlDeviceGetPowerUsage(self._handle) / 1000.0)]

    def _temperature(self) -> list[Reading]:
        sensor = self._nvml.NVML_TEMPERATURE_GPU
        return [self._reading("gpu_temperature_c", self._nvml.nvmlDeviceGetTemperature(self._handle, sensor))]

    def _clock(self) -> list[Reading]:
        clock = self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_SM)
        return [self._reading("gpu_clock_mhz", clock)]

    def _memory_clock(self) -> list[Reading]:
        clock = self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_MEM)
        return [self._reading("gpu_memory_clock_mhz", clock)]

    def _throttling(self) -> list[Reading]:
        reasons = self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle)
        return [
            self._reading("gpu_throttled_thermal", 100.0 if reasons & _THERMAL else 0.0),
            self._reading("gpu_throttled_power", 100.0 if reasons & _POWER else 0.0),
        ]

    def _pcie(self) -> list[Reading]:
        """NVML counts for 20 ms in each of the two calls, and tells KiB per second."""
        counted = self._nvml.nvmlDeviceGetPcieThroughput
        return [
            self._reading("gpu_pcie_recv", _KIB * counted(self._handle, self._nvml.NVML_PCIE_UTIL_RX_BYTES)),
            self._reading("gpu_pcie_sent", _KIB * counted(self._handle, self._nvml.NVML_PCIE_UTIL_TX_BYTES)),
        ]

    def _nvlink(self) -> list[Reading]:
        """What went over all links since the last reading; NVML counts KiB."""
        fields = (
            self._nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
            self._nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
        )
        counts = self._nvml.nvmlDeviceGetFieldValues(self._handle, [(one, _ALL_LINKS) for one in fields])
        readings = []
        for (metric, rate), count in zip(self._links.items(), counts, strict=True):
            if count.nvmlReturn != self._nvml.NVML_SUCCESS:
                raise self._nvml.NVMLError(count.nvmlReturn)
            per_s = rate.update(_KIB * count.value.ullVal)
            if per_s is not None:
                readings.append(self._reading(metric, per_s))
        return readings

    def _processes(self) -> list[Reading]:
        found = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        own = set(self._own())
        used = [one.usedGpuMemory for one in found if one.pid in own and one.usedGpuMemory is not None]
        readings = [self._reading("gpu_processes", len(found))]
        return [*readings, self._reading("gpu_process_memory_bytes", sum(used))] if used else readings
