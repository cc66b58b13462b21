"""Tails by run: opened for the first who needs one, closed some time after the last has left."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tdbg_lab.server.roots import Entry
    from tdbg_lab.server.tail import RunTail

__all__ = ["Tails"]


class Tails:
    """Reference-counted tails.

    Parameters
    ----------
    make
        Starts a tail.
    close_delay_s
        How long a tail that nobody uses stays open.
    max_idle
        Unused tails kept at once; the one that is unused longest closes first.
    on_open
        Called with each new tail, before anybody else sees it.
    """

    def __init__(
        self,
        make: Callable[[Entry], RunTail],
        *,
        close_delay_s: float,
        max_idle: int = 8,
        on_open: Callable[[RunTail], None] | None = None,
    ) -> None:
        self._make = make
        self._close_delay_s = close_delay_s
        self._max_idle = max_idle
        self._on_open = on_open
        self._tails: dict[str, RunTail] = {}
        self._users: dict[str, int] = {}
        self._closing: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def get(self, run_id: str) -> RunTail | None:
        """The open tail of a run, or None; does not keep it open."""
        tail = self._tails.get(run_id)
        return None if tail is None or tail.removed else tail

    def __len__(self) -> int:
        return len(self._tails)

    def acquire(self, entry: Entry) -> RunTail:
        """The tail of a run; `release` it once for each call."""
        timer = self._closing.pop(entry.id, None)
        if timer is not None:
            timer.cancel()
        tail = self._tails.get(entry.id)
        if tail is None or tail.removed:
            if tail is not None:
                self._close(tail)
            tail = self._tails[entry.id] = self._make(entry)
            if self._on_open is not None:
                self._on_open(tail)
        self._users[entry.id] = self._users.get(entry.id, 0) + 1
        return tail

    def release(self, entry: Entry) -> None:
        """Give back what `acquire` gave."""
        left = self._users.get(entry.id, 0) - 1
        if left > 0:
            self._users[entry.id] = left
            return
        self._users.pop(entry.id, None)
        if entry.id not in self._tails or entry.id in self._closing:
            return
        loop = asyncio.get_running_loop()
        self._closing[entry.id] = loop.call_later(self._close_delay_s, self._expire, entry.id)
        while len(self._closing) > self._max_idle:
            self._expire(next(iter(self._closing)))

    @asynccontextmanager
    async def lease(self, entry: Entry) -> AsyncIterator[RunTail]:
        """The tail of a run for the time of a ``with`` block."""
        tail = self.acquire(entry)
        try:
            yield tail
        finally:
            self.release(entry)

    async def aclose(self) -> None:
        """Close all of them."""
        for timer in self._closing.values():
            timer.cancel()
        self._closing.clear()
        for tail in list(self._tails.values()):
            self._close(tail)
        self._tails.clear()
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    def _expire(self, run_id: str) -> None:
        timer = self._closing.pop(run_id, None)
        if timer is not None:
            timer.cancel()
        tail = self._tails.pop(run_id, None)
        if tail is not None:
            self._close(tail)

    def _close(self, tail: RunTail) -> None:
        task = asyncio.ensure_future(tail.aclose())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
