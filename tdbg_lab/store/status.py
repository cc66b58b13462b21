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
    if info.is_local:
        return RunStatus.RUNNING if info.process.find() is not None else RunStatus.CRASHED
    silent_ns = time.time_ns() - max(last_write_ns, info.created_ns)
    return RunStatus.CRASHED if silent_ns > CRASH_SILENCE_NS else RunStatus.RUNNING
