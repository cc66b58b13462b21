from __future__ import annotations

import asyncio
from itertools import pairwise

from tdbg_lab.server.hub import Hub
from tdbg_lab.server.outbox import Outbox


class Client:
    def __init__(self, *watched):
        self.outbox = Outbox()
        self.watched = frozenset(watched)
        self.closed = 0

    def close(self):
        self.closed += 1


def scene(act):
    async def run():
        calls = []
        hub = Hub(on_first=lambda: calls.append("first"), on_last=lambda: calls.append("last"))
        result = await act(hub)
        hub.close()
        return calls, result

    return asyncio.run(run())


def test_first_and_last_client_are_told():
    async def act(hub):
        one, two = Client(), Client()
        for client in (one, two):
            hub.join(client)
        for client in (one, one, two):
            hub.leave(client)
        return one.closed

    assert scene(act) == (["first", "last"], 1)


def test_changes_of_the_list_are_told_at_once_and_then_once_a_second():
    async def act(hub):
        client = Client()
        hub.join(client)
        loop, told = asyncio.get_running_loop(), []
        start = loop.time()
        for _ in range(130):
            hub.runs_changed()
            await asyncio.sleep(0.01)
            if len(client.outbox):
                await client.outbox.get()
                told.append(loop.time() - start)
        return told

    _, told = scene(act)
    assert len(told) >= 2
    assert told[0] < told[1] / 2, "the first change is told at once"
    assert all(later - earlier > 0.9 for earlier, later in pairwise(told))


def test_change_of_a_run_that_everybody_watches_does_not_change_the_list():
    async def act(hub):
        client = Client("a")
        hub.join(client)
        hub.run_changed("a")
        await asyncio.sleep(0.05)
        quiet = len(client.outbox)
        hub.run_changed("b")
        await asyncio.sleep(0.05)
        return quiet, len(client.outbox)

    assert scene(act)[1] == (0, 1)
