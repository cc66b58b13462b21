"""What a process and everything it started have used."""

from __future__ import annotations

import psutil


def cpu_s(pid: int) -> float:
    """Processor seconds of a process and of those below it that still live."""
    root = psutil.Process(pid)
    total = 0.0
    for process in [root, *root.children(recursive=True)]:
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system
    return total
