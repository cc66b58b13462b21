"""Sending one run of the spool, with the options that hold for its place."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tdbg_lab.store.remote.objects import Objects
from tdbg_lab.store.remote.options import storage_options
from tdbg_lab.store.remote.service import FLUSH_S, Service
from tdbg_lab.store.remote.uploader import Uploader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdbg_lab.store.remote.spool import Spooled
    from tdbg_lab.store.remote.url import StoreUrl

__all__ = ["Outcome", "send"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the sending of a run ended."""

    problem: str | None = None
    """Why not all of it was sent."""
    busy: bool = False
    """Another sender is at it; nothing was done."""


def send(
    spooled: Spooled,
    given: Mapping[str, Any] | None = None,
    *,
    stop: threading.Event | None = None,
    flush_s: float = FLUSH_S,
    once: bool = False,
) -> Outcome:
    """Send one run, unless another sender is at it.

    Parameters
    ----------
    once
        Only what is there now; end with the first failure.

    Raises
    ------
    TdbgError
        If the options are wrong.
    OSError
        If the run directory is no longer there.
    """

    def connect(url: StoreUrl) -> Objects:
        return Objects(url, storage_options(url, given))

    lock = spooled.lock()
    if not lock.acquire():
        return Outcome(busy=True)
    try:
        service = Service(spooled, Uploader(spooled, connect), flush_s=flush_s, once=once)
        if service.run(stop or threading.Event()):
            return Outcome()
        return Outcome(service.problem or "The sending was ended before everything was sent.")
    finally:
        lock.release()
