"""The meters of the machine: read once a second for all who look, not at all while nobody does."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tdbg_lab.server.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.server.wire import HostMessage

__all__ = ["Meters"]

INTERVAL_S = 1.0
"""Time between two readings."""
FIRST_S = 0.25
"""Time over which the first rates are taken."""
LINGER_S = 5.0
"""How long the machine is read after the last one has looked away: a side bar is soon opened again."""


class Meters:
    """Tells listeners how busy the machine is.

    Reading takes milliseconds where a driver is slow: it happens in a thread of its own, never twice at once.

    Parameters
    ----------
    machine
        What is read.
    interval_s, linger_s
        Time between two readings, and how long they go on without listeners, s.
    """

    def __init__(
        self, machine: Machine | None = None, *, interval_s: float = INTERVAL_S, linger_s: float = LINGER_S
    ) -> None:
        self._machine = Machine() if machine is None else machine
        self._interval_s = interval_s
        self._linger_s = linger_s
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="tdbg-meters")
        self._listeners: dict[object, Callable[[HostMessage], None]] = {}
        self._latest: HostMessage | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping: asyncio.TimerHandle | None = None

    @property
    def running(self) -> bool:
        """Whether the machine is being read."""
        return self._task is not None

    def subscribe(self, listener: Callable[[HostMessage], None]) -> Callable[[], None]:
        """Call `listener` with each message, with the latest at once; the answer ends that."""
        key = object()
        self._listeners[key] = listener
        if self._stopping is not None:
            self._stopping.cancel()
            self._stopping = None
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())
        elif self._latest is not None:
            listener(self._latest)
        return lambda: self._leave(key)

    async def aclose(self) -> None:
        """Stop reading; twice does no harm."""
        self._listeners.clear()
        if self._stopping is not None:
            self._stopping.cancel()
        task = self._task
        self._stop()
        if task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._reader.shutdown(wait=False)

    def _leave(self, key: object) -> None:
        if self._listeners.pop(key, None) is not None and not self._listeners:
            self._stopping = asyncio.get_running_loop().call_later(self._linger_s, self._stop)

    def _stop(self) -> None:
        self._stopping = None
        if self._task is not None:
            self._task.cancel()
            self._task = self._latest = None

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._reader, self._machine.read)  # sets the marks of the rates
            await asyncio.sleep(min(FIRST_S, self._interval_s))
            while True:
                message = await loop.run_in_executor(self._reader, self._machine.read)
                self._latest = message
                for listener in list(self._listeners.values()):
                    listener(message)
                await asyncio.sleep(self._interval_s)
        finally:
            self._reader.submit(self._machine.close)
