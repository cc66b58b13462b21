"""GPU metrics through NVML."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tdbg_lab.profiler.probe import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["GpuProbe"]

log = logging.getLogger(__name__)

_THERMAL = 0x20 | 0x40
"""NVML's reasons for a lowered clock: software and hardware thermal slowdown."""
_POWER = 0x04 | 0x80
"""Software power cap, hardware power brake."""


class GpuProbe:
    """Metrics of every NVIDIA GPU that NVML sees, by NVML's index: ``gpu0``, ``gpu1``, ...

    =====================  ==================================================
    metric                 value
    =====================  ==================================================
    gpu                    percent of the time some kernel ran
    gpu_memory             percent of the memory in use
    gpu_memory_bytes       bytes in use, by all processes
    gpu_power_w            W
    gpu_temperature_c      degrees Celsius
    gpu_clock_mhz          MHz of its processors
    gpu_throttled_thermal  100 while the clock is lowered for heat, else 0
    gpu_throttled_power    100 while it is lowered to keep to its power, else 0
    =====================  ==================================================

    What a device does not support is asked for once and then left out.

    Parameters
    ----------
    nvml
        Module with NVML's functions, from `open`.
    """

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._handles = dict(self._reachable())
        self._refused: set[tuple[str, str]] = set()
        self._readers = (
            self._utilisation,
            self._memory,
            self._power,
            self._temperature,
            self._clock,
            self._throttling,
        )

    @classmethod
    def open(cls, nvml: Any = None) -> GpuProbe | None:
        """Probe of this machine's GPUs, or None where there is none."""
        if nvml is None:
            try:
                nvml = import_module("pynvml")
            except ImportError:
                return None
        try:
            nvml.nvmlInit()
            probe = cls(nvml)
        except nvml.NVMLError as error:
            log.debug("No GPU metrics: %s", error)
            return None
        return probe if probe.devices else None

    @property
    def devices(self) -> list[str]:
        """Names of the devices, as in the samples."""
        return list(self._handles)

    def name(self, device: str) -> str:
        """What the maker calls it; empty where NVML does not say."""
        try:
            name = self._nvml.nvmlDeviceGetName(self._handles[device])
        except self._nvml.NVMLError as error:
            log.debug("No name of %s: %s", device, error)
            return ""
        return name.decode(errors="replace") if isinstance(name, bytes) else str(name)

    def memory_total(self, device: str) -> int | None:
        """Memory there is, bytes; None where NVML does not say."""
        try:
            return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handles[device]).total)
        except self._nvml.NVMLError as error:
            log.debug("No memory of %s: %s", device, error)
            return None

    def read(self) -> Iterator[Reading]:
        """Read every metric of every device once."""
        for device, handle in self._handles.items():
            for read in self._readers:
                yield from self._guarded(read, device, handle)

    def close(self) -> None:
        """Let go of the driver."""
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError as error:
            log.debug("NVML did not shut down: %s", error)

    def _reachable(self) -> Iterator[tuple[str, Any]]:
        """Devices and handles; one that is lost or forbidden does not hide the others."""
        for index in range(self._nvml.nvmlDeviceGetCount()):
            try:
                yield f"gpu{index}", self._nvml.nvmlDeviceGetHandleByIndex(index)
            except self._nvml.NVMLError as error:
                log.debug("No metrics of GPU %d: %s", index, error)

    def _guarded(self, read: Callable[[str, Any], list[Reading]], device: str, handle: Any) -> list[Reading]:
        key = (read.__name__, device)
        if key in self._refused:
            return []
        try:
            return read(device, handle)
        except (self._nvml.NVMLError_NotSupported, self._nvml.NVMLError_FunctionNotFound):
            self._refused.add(key)
        except self._nvml.NVMLError as error:
            log.debug("No reading of %s: %s", device, error)
        return []

    def _utilisation(self, device: str, handle: Any) -> list[Reading]:
        return [Reading("gpu", device, float(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu))]

    def _memory(self, device: str, handle: Any) -> list[Reading]:
        memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
        return [
            Reading("gpu_memory", device, 100.0 * memory.used / memory.total if memory.total else 0.0),
            Reading("gpu_memory_bytes", device, float(memory.used)),
        ]

    def _power(self, device: str, handle: Any) -> list[Reading]:
        return [Reading("gpu_power_w", device, self._nvml.nvmlDeviceGetPowerUsage(handle) / 1000.0)]

    def _temperature(self, device: str, handle: Any) -> list[Reading]:
        sensor = self._nvml.NVML_TEMPERATURE_GPU
        return [
            Reading("gpu_temperature_c", device, float(self._nvml.nvmlDeviceGetTemperature(handle, sensor)))
        ]

    def _clock(self, device: str, handle: Any) -> list[Reading]:
        clock = self._nvml.nvmlDeviceGetClockInfo(handle, self._nvml.NVML_CLOCK_SM)
        return [Reading("gpu_clock_mhz", device, float(clock))]

    def _throttling(self, device: str, handle: Any) -> list[Reading]:
        reasons = self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        return [
            Reading("gpu_throttled_thermal", device, 100.0 if reasons & _THERMAL else 0.0),
            Reading("gpu_throttled_power", device, 100.0 if reasons & _POWER else 0.0),
        ]
