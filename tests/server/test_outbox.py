from __future__ import annotations

import asyncio

from tdbg_lab.server.outbox import Outbox


def test_latest_message_of_a_topic_wins_and_keeps_its_place():
    outbox = Outbox()
    outbox.put("a", {"type": "removed", "id": "1"})
    outbox.put("b", {"type": "runs"})
    outbox.put("a", {"type": "removed", "id": "2"})

    async def drain():
        return [await outbox.get(), await outbox.get()]

    assert asyncio.run(drain()) == [{"type": "removed", "id": "2"}, {"type": "runs"}]


def test_slow_client_does_not_grow_memory():
    outbox = Outbox(max_topics=10)
    for number in range(100_000):
        outbox.put(str(number % 50), {"type": "removed", "id": str(number)})
    assert len(outbox) == 10
    assert outbox.dropped > 0


def test_reader_waits_for_a_message():
    async def scene():
        outbox = Outbox()
        reader = asyncio.ensure_future(outbox.get())
        await asyncio.sleep(0)
        assert not reader.done()
        outbox.put("runs", {"type": "runs"})
        return await reader

    assert asyncio.run(scene()) == {"type": "runs"}
