"""One connected client: what it watches and what waits to be sent to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.errors import TdbgError
from tdbg_lab.server.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tdbg_lab.server.catalog import Catalog
    from tdbg_lab.server.meters import Meters
    from tdbg_lab.server.roots import Entry
    from tdbg_lab.server.summary import Summaries
    from tdbg_lab.server.tail import RunTail
    from tdbg_lab.server.tails import Tails
    from tdbg_lab.server.wire import HostMessage

__all__ = ["MAX_WATCHED", "Subscriber"]

MAX_WATCHED = 32
"""Runs one client may watch; the rest of a longer list is left out."""


class Subscriber:
    """Holds a tail for each watched run and turns its changes into messages in `outbox`."""

    def __init__(self, catalog: Catalog, tails: Tails, summaries: Summaries, meters: Meters) -> None:
        self.outbox = Outbox()
        self._catalog = catalog
        self._tails = tails
        self._summaries = summaries
        self._meters = meters
        self._look_away: Callable[[], None] | None = None
        self._watched: dict[str, tuple[Entry, Callable[[], None]]] = {}
        self._wanted: frozenset[str] = frozenset()
        self._closed = False

    @property
    def watched(self) -> frozenset[str]:
        """Ids of the watched runs."""
        return frozenset(self._watched)

    async def watch(self, run_ids: Iterable[str]) -> None:
        """Watch exactly these runs; those that do not exist are answered with ``removed``."""
        wanted = self._wanted = frozenset(list(dict.fromkeys(run_ids))[:MAX_WATCHED])
        for run_id in self.watched - wanted:
            self._drop(run_id)
        for run_id in wanted - self.watched:
            try:
                entry = await self._catalog.get(run_id)
            except TdbgError:
                self.outbox.put(run_id, {"type": "removed", "id": run_id})
                continue
            if self._closed or self._wanted != wanted:  # a later call decides
                return
            self._add(entry)

    def look(self, *, on: bool) -> None:
        """Be told how busy the machine is, or no more; twice does no harm."""
        if on and self._look_away is None and not self._closed:
            self._look_away = self._meters.subscribe(self._on_host)
        elif not on and self._look_away is not None:
            self._look_away()
            self._look_away = None
            self.outbox.discard("host")

    def close(self) -> None:
        """Watch nothing any more; twice does no harm."""
        self._closed = True
        self.look(on=False)
        for run_id in self.watched:
            self._drop(run_id)

    def _add(self, entry: Entry) -> None:
        if entry.id in self._watched:
            return
        tail = self._tails.acquire(entry)
        self._watched[entry.id] = (entry, tail.subscribe(self._on_change))
        if tail.digest is not None:
            self._on_change(tail)

    def _drop(self, run_id: str) -> None:
        entry, unsubscribe = self._watched.pop(run_id)
        unsubscribe()
        self._tails.release(entry)
        self.outbox.discard(run_id)

    def _on_host(self, message: HostMessage) -> None:
        self.outbox.put("host", message)

    def _on_change(self, tail: RunTail) -> None:
        run_id = tail.entry.id
        if tail.removed:
            if run_id in self._watched:
                self._drop(run_id)
            self.outbox.put(run_id, {"type": "removed", "id": run_id})
            return
        digest = tail.digest
        summary = self._summaries.of(tail.entry)
        if digest is None or summary is None:
            return
        self.outbox.put(
            run_id,
            {"type": "run", "summary": summary, "version": digest.version, "last_step": digest.last_step},
        )
