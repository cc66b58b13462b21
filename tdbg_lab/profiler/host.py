"""CPU, memory, disk and network of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil

from tdbg_lab.profiler.cgroup import own_container
from tdbg_lab.profiler.probe import Rate, Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tdbg_lab.profiler.cgroup import Container

__all__ = ["HostProbe"]

_LOOPBACK = ("lo", "lo0", "Loopback Pseudo-Interface 1")


class HostProbe:
    """Metrics of the whole machine, or of the container where one limits us.

    ========================  ======================  ==============================================
    metric                    device                  value
    ========================  ======================  ==============================================
    cpu                       cpu, cpu0, cpu1, ...    percent busy; of the container's share if limited
    iowait                    cpu                     percent of the time that cores waited for disks
    memory                    memory                  percent of the memory, or of the container's limit
    memory_bytes              memory                  bytes in use
    swap                      memory                  percent of the swap space in use, where there is some
    disk_read, disk_write     disk                    bytes per second, all disks
    net_recv, net_sent        net                     bytes per second, without the loopback
    ========================  ======================  ==============================================
    """

    def __init__(self, container: Container | None = None) -> None:
        self._container = own_container() if container is None else container
        self._cpu = Rate()
        self._waiting = Rate()
        self._rates = {name: Rate() for name in ("disk_read", "disk_write", "net_recv", "net_sent")}
        psutil.cpu_percent(percpu=True)  # the first call only sets the mark

    @property
    def cores(self) -> float:
        """CPU time there is per second: the number of cores, or the container's share of them."""
        return self._container.cores or float(psutil.cpu_count() or 1)

    def memory(self) -> tuple[int, int]:
        """Memory in use and memory there is, bytes; of the container where it has a limit."""
        machine = psutil.virtual_memory()
        limit = self._container.memory_limit_bytes
        if limit is not None and limit < machine.total:
            own = self._container.memory_used_bytes()
            if own is not None:
                return own, limit
        return machine.total - machine.available, machine.total

    def read(self) -> Iterator[Reading]:
        """Read every metric once; rates from the second time on."""
        yield from self._read_cpu()
        yield from self._read_waiting()
        yield from self._read_memory()
        yield from self._read_disk()
        yield from self._read_net()

    def _read_cpu(self) -> Iterator[Reading]:
        cores = psutil.cpu_percent(percpu=True)
        total = sum(cores) / len(cores) if cores else None
        if self._container.cores is not None:
            used = self._container.cpu_seconds()
            rate = None if used is None else self._cpu.update(used)
            total = total if used is None else None if rate is None else 100.0 * rate / self._container.cores
        if total is not None:
            yield Reading("cpu", "cpu", min(100.0, total))
        for core, percent in enumerate(cores):
            yield Reading("cpu", f"cpu{core}", percent)

    def _read_waiting(self) -> Iterator[Reading]:
        """Share of the time that cores had nothing to do but wait for disks, where the system counts it."""
        waited = getattr(psutil.cpu_times(), "iowait", None)
        if waited is None:
            return
        rate = self._waiting.update(waited)
        cores = psutil.cpu_count() or 1
        if rate is not None:
            yield Reading("iowait", "cpu", min(100.0, 100.0 * rate / cores))

    def _read_memory(self) -> Iterator[Reading]:
        used, total = self.memory()
        yield Reading("memory", "memory", 100.0 * used / total)
        yield Reading("memory_bytes", "memory", float(used))
        try:
            swap = psutil.swap_memory()
        except (OSError, RuntimeError, NotImplementedError):  # containers may hide it
            return
        if swap.total:
            yield Reading("swap", "memory", float(swap.percent))

    def _read_disk(self) -> Iterator[Reading]:
        try:
            disk = psutil.disk_io_counters()
        except (OSError, RuntimeError, NotImplementedError):
            return
        if disk is not None:
            yield from self._rate("disk_read", "disk", disk.read_bytes)
            yield from self._rate("disk_write", "disk", disk.write_bytes)

    def _read_net(self) -> Iterator[Reading]:
        try:
            cards = psutil.net_io_counters(pernic=True)
        except OSError:
            return
        outside = [card for name, card in cards.items() if name not in _LOOPBACK]
        yield from self._rate("net_recv", "net", sum(card.bytes_recv for card in outside))
        yield from self._rate("net_sent", "net", sum(card.bytes_sent for card in outside))

    def _rate(self, metric: str, device: str, count: float) -> Iterator[Reading]:
        rate = self._rates[metric].update(count)
        if rate is not None:
            yield Reading(metric, device, rate)
