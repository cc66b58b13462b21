"""All connected clients, and what everybody is told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.server.subscriber import Subscriber
    from tdbg_lab.server.wire import Message

__all__ = ["RUNS_INTERVAL_S", "Hub"]

RUNS_INTERVAL_S = 1.0
"""Shortest time between two notices that the list changed."""


class Hub:
    """Sends to all clients.

    Parameters
    ----------
    on_first, on_last
        Called when the first client comes and when the last one has left.
    """

    def __init__(self, *, on_first: Callable[[], None], on_last: Callable[[], None]) -> None:
        self._clients: set[Subscriber] = set()
        self._on_first = on_first
        self._on_last = on_last
        self._timer: asyncio.TimerHandle | None = None
        self._told_s = float("-inf")

    def __len__(self) -> int:
        return len(self._clients)

    def join(self, client: Subscriber) -> None:
        """Add a client."""
        self._clients.add(client)
        if len(self._clients) == 1:
            self._on_first()

    def leave(self, client: Subscriber) -> None:
        """Remove a client; twice does no harm."""
        if client in self._clients:
            self._clients.discard(client)
            client.close()
            if not self._clients:
                self._on_last()

    def broadcast(self, topic: str, message: Message) -> None:
        """Put `message` into everybody's outbox."""
        for client in self._clients:
            client.outbox.put(topic, message)

    def runs_changed(self) -> None:
        """Tell everybody that the list changed, now or when the last notice is old enough."""
        if self._timer is not None or not self._clients:
            return
        loop = asyncio.get_running_loop()
        wait_s = max(0.0, self._told_s + RUNS_INTERVAL_S - loop.time())
        self._timer = loop.call_later(wait_s, self._tell_runs)

    def run_changed(self, run_id: str) -> None:
        """Tell that the list changed, unless everybody watches this run and knows already."""
        if any(run_id not in client.watched for client in self._clients):
            self.runs_changed()

    def close(self) -> None:
        """Forget the clients."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for client in list(self._clients):
            client.close()
        self._clients.clear()

    def _tell_runs(self) -> None:
        self._timer = None
        self._told_s = asyncio.get_running_loop().time()
        self.broadcast("runs", {"type": "runs"})
