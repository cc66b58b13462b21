"""How busy the machine is, as the message that the meters show."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from tdbg_lab.profiler.gpu import GpuProbe
from tdbg_lab.profiler.host import HostProbe

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.profiler.probe import Probe
    from tdbg_lab.server.wire import GpuJson, HostMessage

__all__ = ["Machine"]

log = logging.getLogger(__name__)

Values = dict[tuple[str, str], float]
"""What the probes read, by metric and device."""


class Machine:
    """Reads the profiler's probes. Every call must come from the same thread, and may take some milliseconds.

    Nothing is opened before the first `read`, and nothing is raised: what cannot be read is None.

    Parameters
    ----------
    find_gpus
        Gives the probe of the GPUs, or None where there is none, and why some cannot be read.
    """

    def __init__(self, find_gpus: Callable[[], tuple[GpuProbe | None, str]] | None = None) -> None:
        self._find_gpus = find_gpus or partial(GpuProbe.find, traffic=False)
        self._probes: list[Probe] | None = None
        """Those that did not fail; None while nothing is open."""
        self._gpus: GpuProbe | None = None
        self._cores: float | None = None
        self._memory_total: int | None = None
        self._gpu_facts: dict[str, tuple[str, int | None]] = {}
        """Name and memory, bytes, of each GPU."""
        self._gpu_problem = ""

    def read(self) -> HostMessage:
        """Read everything once; rates, that of the CPU too, are those since the reading before."""
        if self._probes is None:
            self._probes = []
            self._open_host(self._probes)
            self._open_gpu(self._probes)
        values: Values = {}
        for probe in tuple(self._probes):
            values |= self._values(probe, self._probes)
        used = values.get(("memory_bytes", "memory"))
        return {
            "type": "host",
            "time_ns": time.time_ns(),
            "cpu": values.get(("cpu", "cpu")),
            "cores": self._cores,
            "memory_used": None if used is None else int(used),
            "memory_total": self._memory_total,
            "swap": values.get(("swap", "memory")),
            "disk_read": values.get(("disk_read", "disk")),
            "disk_write": values.get(("disk_write", "disk")),
            "net_recv": values.get(("net_recv", "net")),
            "net_sent": values.get(("net_sent", "net")),
            "gpus": [self._gpu(device, values) for device in self._gpu_facts],
            "gpu_problem": self._gpu_problem,
        }

    def close(self) -> None:
        """Let go of the driver; the next `read` opens it again."""
        gpus, self._gpus, self._probes = self._gpus, None, None
        if gpus is not None:
            gpus.close()

    def _open_host(self, probes: list[Probe]) -> None:
        try:
            host = HostProbe()
            self._cores, self._memory_total = host.cores, host.memory()[1]
        except Exception:
            log.exception("CPU and memory of this machine cannot be read")
            return
        probes.append(host)

    def _open_gpu(self, probes: list[Probe]) -> None:
        self._gpu_facts = {}
        try:
            gpus, self._gpu_problem = self._find_gpus()
            self._gpus = gpus
            if gpus is None:
                return
            self._gpu_facts = {name: (gpus.name(name), gpus.memory_total(name)) for name in gpus.devices}
        except Exception:  # a driver half removed fails in ways of its own
            log.exception("The GPUs of this machine cannot be read")
            self._gpu_problem = "The GPUs of this machine cannot be read."
            return
        probes.append(gpus)

    @staticmethod
    def _values(probe: Probe, probes: list[Probe]) -> Values:
        """What `probe` reads; one that fails is taken out of `probes`."""
        try:
            return {(metric, device): value for metric, device, value in probe.read()}
        except Exception:
            log.exception("%s is left out from now on", type(probe).__name__)
            probes.remove(probe)
            return {}

    def _gpu(self, device: str, values: Values) -> GpuJson:
        name, total = self._gpu_facts[device]
        used = values.get(("gpu_memory_bytes", device))
        return {
            "device": device,
            "name": name,
            "percent": values.get(("gpu", device)),
            "memory_used": None if used is None else int(used),
            "memory_total": total,
            "temperature_c": values.get(("gpu_temperature_c", device)),
            "power_w": values.get(("gpu_power_w", device)),
            "answers": ("gpu_silent", device) not in values,
        }
