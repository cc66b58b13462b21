"""Where a run stands, seen from outside its process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tdbg_lab.records import RunStatus
from tdbg_lab.store.limits import CRASH_SILENCE_NS

if TYPE_CHECKING:
    from tdbg_lab.store.info import RunInfo


def infer_status(info: RunInfo, last_write_ns: int) -> RunStatus:
    """The status as written, or ``crashed`` when its process is gone or silent for long."""
    if info.status != RunStatus.RUNNING:
        return info.status
    import platform

    if info.host == platform.node():
        return RunStatus.RUNNING if _alive(info) else RunStatus.CRASHED
    silent_ns = time.time_ns() - max(last_write_ns, info.created_ns)
    return RunStatus.CRASHED if silent_ns > CRASH_SILENCE_NS else RunStatus.RUNNING


def _alive(info: RunInfo) -> bool:
    import psutil

    try:
        process = psutil.Process(info.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return not info.process_created_s or abs(process.create_time() - info.process_created_s) < 1.0
    except psutil.AccessDenied:
        return True
    except (psutil.NoSuchProcess, ValueError, OverflowError):
        return False
