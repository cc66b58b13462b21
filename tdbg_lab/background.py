"""Manners of the processes that run beside training: they hear one signal, and give way."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

__all__ = ["stay_behind"]


def stay_behind(stop: threading.Event, *, nice: int) -> None:
    """Set `stop` on SIGTERM, ignore the keyboard, and lower the priority by `nice`: training comes first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a notebook or terminal reaches the whole group
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    if hasattr(os, "nice"):
        os.nice(nice)
