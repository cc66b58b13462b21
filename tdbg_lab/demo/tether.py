"""Ends this process with the one that started it, however that one ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

from tdbg_lab.profiler.lifetime import find_process, is_alive

if TYPE_CHECKING:
    from psutil import Process

__all__ = ["end_with"]

LOOK_S = 1.0


def end_with(pid: int) -> None:
    """Send this process SIGTERM as soon as the process `pid` is gone: what is killed ends nobody itself."""
    threading.Thread(target=_watch, args=(find_process(pid),), name="tdbg-tether", daemon=True).start()


def _watch(process: Process | None) -> None:
    while process is not None and is_alive(process):
        time.sleep(LOOK_S)
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGTERM)  # that thread may wait in a call: the signal ends it
    else:
        os.kill(os.getpid(), signal.SIGTERM)
