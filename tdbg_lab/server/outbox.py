"""What waits to be sent to one socket: bounded, the latest message of a topic wins."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdbg_lab.server.wire import Message

__all__ = ["Outbox"]

MAX_TOPICS = 512
"""Messages kept for a slow client; the oldest topic gives way."""


class Outbox:
    """A queue with at most one message a topic, so a slow client cannot grow our memory."""

    def __init__(self, max_topics: int = MAX_TOPICS) -> None:
        self._messages: OrderedDict[str, Message] = OrderedDict()
        self._max_topics = max_topics
        self._filled = asyncio.Event()
        self.dropped = 0
        """Messages that gave way to others of other topics."""

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, topic: str, message: Message) -> None:
        """Replace what waits under `topic`; it keeps its place in the queue."""
        self._messages[topic] = message
        while len(self._messages) > self._max_topics:
            self._messages.popitem(last=False)
            self.dropped += 1
        self._filled.set()

    def discard(self, topic: str) -> None:
        """Forget what waits under `topic`."""
        self._messages.pop(topic, None)

    async def get(self) -> Message:
        """The message that waits longest; waits for one."""
        while not self._messages:
            self._filled.clear()
            await self._filled.wait()
        return self._messages.popitem(last=False)[1]
