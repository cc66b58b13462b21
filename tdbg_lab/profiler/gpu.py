"""GPU metrics through NVML."""

from __future__ import annotations

import logging
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from tdbg_lab.profiler.bounded import BoundedCall
from tdbg_lab.profiler.gpu_device import GpuDevice
from tdbg_lab.profiler.probe import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

__all__ = ["GpuProbe"]

log = logging.getLogger(__name__)

T = TypeVar("T")
LIMIT_S = 1.0
"""How long a device may take to answer; one that does not costs this time once."""
OPENING_S = 10.0
"""How long the driver may take to be opened: it may have to be loaded first."""


class GpuProbe:
    """Metrics of every NVIDIA GPU that NVML sees, by NVML's index: ``gpu0``, ``gpu1``, ...

    The parts of a GPU that is divided (MIG) are devices of their own, ``gpu0:0``, ``gpu0:1``, ...; most
    metrics there are only of the whole. Metrics are those of `GpuDevice`, and of a device that does not
    answer within `LIMIT_S` nothing but ``gpu_silent``, 100. What a device does not support is asked for once
    and then left out.

    Every device is read in a thread of its own: one that hangs does not hold up the others, nor us.

    Parameters
    ----------
    nvml
        Module with NVML's functions, opened.
    own
        Gives the numbers of the processes of the training.
    traffic
        Whether to read what takes longer: traffic and processes.
    limit_s
        How long a device may take to answer, s.
    """

    def __init__(
        self,
        nvml: Any,
        *,
        own: Callable[[], Collection[int]] = tuple,
        traffic: bool = True,
        limit_s: float = LIMIT_S,
    ) -> None:
        self._nvml = nvml
        self._limit_s = limit_s
        self.problem = ""
        """Why some devices cannot be read; empty when all can."""
        self._devices = {
            name: GpuDevice(nvml, name, handle, own=own, traffic=traffic)
            for name, handle in self._reachable()
        }
        self._calls = {
            name: BoundedCall(device.read, f"tdbg-{name}") for name, device in self._devices.items()
        }

    @classmethod
    def find(
        cls,
        nvml: Any = None,
        *,
        own: Callable[[], Collection[int]] = tuple,
        traffic: bool = True,
        limit_s: float = LIMIT_S,
        opening_s: float = OPENING_S,
    ) -> tuple[GpuProbe | None, str]:
        """Probe of this machine's GPUs, or None, and in a sentence what cannot be read (empty: nothing)."""
        if nvml is None:
            try:
                nvml = import_module("pynvml")
            except ImportError:
                return None, "GPUs are read through the package nvidia-ml-py, which is not installed."

        def opened() -> GpuProbe:
            nvml.nvmlInit()
            return cls(nvml, own=own, traffic=traffic, limit_s=limit_s)

        try:
            answer = BoundedCall(opened, "tdbg-nvml").once(opening_s)
        except nvml.NVMLError as error:
            return None, _why_none(nvml, error)
        if answer is None:
            return None, "The NVIDIA driver does not answer: no GPU is read."
        (probe,) = answer
        if probe.devices:
            return probe, probe.problem
        return None, probe.problem or "The NVIDIA driver knows no GPU."

    @property
    def devices(self) -> list[str]:
        """Names of the devices, as in the samples."""
        return list(self._devices)

    def name(self, device: str) -> str:
        """What the maker calls it; empty where NVML does not say."""
        return self._bounded(self._devices[device].name) or ""

    def memory_total(self, device: str) -> int | None:
        """Memory there is, bytes; None where NVML does not say."""
        return self._bounded(self._devices[device].memory_total)

    def read(self) -> Iterator[Reading]:
        """Read every metric of every device once, all devices at a time."""
        asked = [(device, call) for device, call in self._calls.items() if call.ask()]
        until_s = time.monotonic() + self._limit_s
        for device, call in asked:
            answer = call.answer(until_s)
            yield from [Reading("gpu_silent", device, 100.0)] if answer is None else answer[0]

    def close(self) -> None:
        """Let go of the driver."""
        for call in self._calls.values():
            call.close()
        try:
            self._bounded(self._nvml.nvmlShutdown)
        except self._nvml.NVMLError as error:
            log.debug("NVML did not shut down: %s", error)

    def _bounded(self, call: Callable[[], T]) -> T | None:
        answer = BoundedCall(call, "tdbg-nvml").once(self._limit_s)
        return None if answer is None else answer[0]

    def _reachable(self) -> Iterator[tuple[str, Any]]:
        """Devices and handles; one that is lost or forbidden does not hide the others."""
        for index in range(self._nvml.nvmlDeviceGetCount()):
            try:
                handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            except self._nvml.NVMLError as error:
                log.debug("No metrics of GPU %d: %s", index, error)
                self.problem = self.problem or f"gpu{index} cannot be read: {error}."
                continue
            yield f"gpu{index}", handle
            yield from ((f"gpu{index}:{part}", each) for part, each in self._parts(handle))

    def _parts(self, handle: Any) -> Iterator[tuple[int, Any]]:
        """Numbers and handles of the parts of a divided GPU."""
        try:
            if self._nvml.nvmlDeviceGetMigMode(handle)[0] != self._nvml.NVML_DEVICE_MIG_ENABLE:
                return
            most = self._nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
        except self._nvml.NVMLError:  # most GPUs cannot be divided
            return
        for part in range(most):
            try:
                yield part, self._nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, part)
            except self._nvml.NVMLError:  # places may be empty
                continue


def _why_none(nvml: Any, error: Exception) -> str:
    """Why the driver cannot be opened."""
    code = getattr(error, "value", None)
    if code == nvml.NVML_ERROR_NO_PERMISSION:
        return (
            f"This process may not read the GPUs ({error}): start it as a user, or in a container, that may."
        )
    if code in {nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED}:
        return "No NVIDIA driver was found: no GPU is read."
    return f"The GPUs cannot be read: {error}."
