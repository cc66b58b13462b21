"""CPU and memory of the training process and its workers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import psutil

from tdbg_lab.profiler.probe import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ProcessProbe"]

_RESCAN_READINGS = 10  # looking for children reads the whole process table


class ProcessProbe:
    """Metrics of one process with its children (data loading workers), without our own processes.

    ``process_cpu`` is in percent of one core, so it may exceed 100. ``process_memory_bytes`` is the
    sum of the resident sets: pages shared between workers count once for each. Where there are children,
    ``workers`` is their number, and ``worker_cpu`` what they compute, in percent of one core.
    """

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._children: dict[int, psutil.Process] = {}
        self._readings = 0
        self._mark(process)

    def pids(self) -> tuple[int, ...]:
        """Numbers of the process and its children, as of the last reading."""
        return self._process.pid, *tuple(self._children)

    def read(self) -> Iterator[Reading]:
        """Read both metrics; nothing when the process is gone."""
        if self._readings % _RESCAN_READINGS == 0:
            self._scan()
        self._readings += 1
        found = [_measure(process) for process in (self._process, *self._children.values())]
        parts = [part for part in found if part is not None]
        if parts:
            yield Reading("process_cpu", "process", sum(cpu for cpu, _ in parts))
            yield Reading("process_memory_bytes", "process", float(sum(rss for _, rss in parts)))
        working = [part for part in found[1:] if part is not None]
        if working:
            yield Reading("workers", "process", float(len(working)))
            yield Reading("worker_cpu", "process", sum(cpu for cpu, _ in working))

    def _scan(self) -> None:
        try:
            found = {child.pid: child for child in self._process.children(recursive=True)}
        except psutil.Error:
            found = {}
        kept: dict[int, psutil.Process] = {}
        for pid, child in found.items():
            known = self._children.get(pid)
            if known == child:
                kept[pid] = known
            elif not _is_ours(child):
                kept[pid] = child
                self._mark(child)
        self._children = kept

    @staticmethod
    def _mark(process: psutil.Process) -> None:
        _measure(process)  # the first reading of cpu_percent only sets the mark


def _measure(process: psutil.Process) -> tuple[float, int] | None:
    try:
        with process.oneshot():
            return process.cpu_percent(), process.memory_info().rss
    except psutil.Error:
        return None


def _is_ours(process: psutil.Process) -> bool:
    if process.pid == os.getpid():
        return True
    try:
        return any(word in ("tdbg_lab.profiler", "tdbg_lab.rules") for word in process.cmdline()[:8])
    except psutil.Error:
        return False
