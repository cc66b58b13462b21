"""Waiting for what a training has yet to write: as the predecessor does, but not without a word."""

from __future__ import annotations

import logging
import time

__all__ = ["Waiting"]

_SAY_AFTER_S = 5.0

_log = logging.getLogger("tdbg_lab")


class Waiting:
    """Pauses between two looks; says once what it waits for when that takes long.

    Parameters
    ----------
    what
        Completes "waiting for ...".
    poll_s
        Time between two looks.
    """

    def __init__(self, what: str, *, poll_s: float = 0.1) -> None:
        self._what = what
        self._poll_s = poll_s
        self._since: float | None = time.monotonic()

    def pause(self) -> None:
        """Wait a moment."""
        if self._since is not None and time.monotonic() - self._since > _SAY_AFTER_S:
            self._since = None
            _log.warning("tdbg-lab: still waiting for %s; interrupt this when none is coming.", self._what)
        time.sleep(self._poll_s)
