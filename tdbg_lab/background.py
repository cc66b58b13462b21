"""Manners of what runs beside training: processes hear one signal, and give way; threads need not be."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["start_thread", "stay_behind"]


def stay_behind(stop: threading.Event, *, nice: int) -> None:
    """Set `stop` on SIGTERM, ignore the keyboard, and lower the priority by `nice`: training comes first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a notebook or terminal reaches the whole group
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    if hasattr(os, "nice"):
        os.nice(nice)


def start_thread(target: Callable[[], object], name: str) -> threading.Thread | None:
    """Start a thread that the end of the program does not wait for; None where no more may be started.

    Containers and users have a limit, which a training with many workers may reach at any time.
    """
    thread = threading.Thread(target=target, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread
