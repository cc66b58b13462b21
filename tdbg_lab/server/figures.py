"""Draw views in threads; keep drawn figures; start jobs for heavy ones."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tdbg_lab.server.jobs import Job, JobTask

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from concurrent.futures import Executor

    from tdbg_lab.run import Run
    from tdbg_lab.server.jobs import Jobs
    from tdbg_lab.server.roots import Entry
    from tdbg_lab.server.wire import PendingJson

__all__ = ["Figures"]

log = logging.getLogger(__name__)

MAX_PREPARED = 16
"""Preparations kept, for the next picture and as a start for the next preparation."""
MIN_REST_S = 2.0
"""A preparation is repeated at the earliest after as long as it took, and after this time."""
MOVING = frozenset({"step", "n_out", "window_s"})
"""Parameters that a preparation does not depend on: they choose what is shown of it."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A figure, as it goes over the wire."""

    figure: bytes
    """Plotly JSON."""
    checked: Mapping[str, Any] | None
    """Complete parameters of a view that has to be prepared, else None."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What a job answered."""

    data: Any
    version: int
    """Version of the run when the job was asked for."""
    next_s: float
    """Monotonic time from which on it may be repeated."""


class Figures:
    """Figures of views.

    Figures are kept by run, version, view and parameters; the same request made twice at a time is
    drawn once. A view that has to be prepared is drawn from the last preparation, or from what it can
    show at once, and a job makes the next one.
    """

    def __init__(self, jobs: Jobs, *, pool: Executor, cache_bytes: int) -> None:
        self._jobs = jobs
        self._pool = pool
        self._cache_bytes = cache_bytes
        self._cache: OrderedDict[Hashable, _Drawn] = OrderedDict()
        self._cached_bytes = 0
        self._drawing: dict[Hashable, asyncio.Task[_Drawn]] = {}
        self._prepared: OrderedDict[Hashable, _Prepared] = OrderedDict()

    async def answer(self, entry: Entry, run: Run, view: str, params: Mapping[str, Any]) -> bytes:
        """The answer to a request for a figure, as JSON.

        Raises
        ------
        NotFoundError
            When there is no such view.
        ConfigError
            When a parameter does not fit.
        """
        started = time.monotonic()
        version = run.version
        base = (entry.id, view, _canonical(params, without=MOVING))
        prepared = self._prepared.get(base)
        key = (entry.id, version, view, _canonical(params), None if prepared is None else prepared.version)
        drawn = self._cache.get(key)
        if drawn is None:
            drawn = await self._draw_once(key, run, view, params, None if prepared is None else prepared.data)
        else:
            self._cache.move_to_end(key)
        pending = None
        if drawn.checked is not None:
            pending = self._pending(base, version, JobTask(entry.directory, view, drawn.checked))
        tail = {"version": version, "pending": pending, "ms": round((time.monotonic() - started) * 1e3, 1)}
        return b'{"figure":' + drawn.figure + b"," + json.dumps(tail).encode()[1:]

    async def _draw_once(
        self, key: Hashable, run: Run, view: str, params: Mapping[str, Any], prepared: Any
    ) -> _Drawn:
        task = self._drawing.get(key)
        if task is None:
            task = self._drawing[key] = asyncio.ensure_future(self._draw(key, run, view, params, prepared))
            task.add_done_callback(lambda _: self._drawing.pop(key, None))
        return await asyncio.shield(task)

    async def _draw(
        self, key: Hashable, run: Run, view: str, params: Mapping[str, Any], prepared: Any
    ) -> _Drawn:
        loop = asyncio.get_running_loop()
        drawn = await loop.run_in_executor(self._pool, _draw, run, view, params, prepared)
        self._cache[key] = drawn
        self._cached_bytes += len(drawn.figure)
        while self._cached_bytes > self._cache_bytes and self._cache:
            self._cached_bytes -= len(self._cache.popitem(last=False)[1].figure)
        return drawn

    def _pending(self, base: Hashable, version: int, task: JobTask) -> PendingJson | None:
        """The job that makes a better picture, started if need be; None when there is nothing to better."""
        job = self._jobs.find(base)
        if job is not None:
            return job.pending
        last = self._prepared.get(base)
        if last is not None and (last.version == version or time.monotonic() < last.next_s):
            return None
        started = time.monotonic()

        previous = None if last is None else last.data

        def keep(data: Any) -> None:
            now = time.monotonic()
            self._keep(base, _Prepared(data, version, now + max(MIN_REST_S, now - started)))

        def give_up() -> None:  # not again before the run has moved on
            keep(previous)

        job = Job(base, replace(task, previous=previous), keep, give_up)
        self._jobs.start(job)
        return job.pending

    def _keep(self, base: Hashable, prepared: _Prepared) -> None:
        self._prepared[base] = prepared
        self._prepared.move_to_end(base)
        while len(self._prepared) > MAX_PREPARED:
            self._prepared.popitem(last=False)


def _draw(run: Run, view: str, params: Mapping[str, Any], prepared: Any) -> _Drawn:
    views = import_module("tdbg_lab.views")
    checked = views.check_params(run, view, params)
    heavy = views.needs_preparing(run, view, params)
    figure = views.call_view(run, view, params, prepared=prepared if heavy else None, wait=False)
    return _Drawn(views.figure_json(figure).encode(), checked if heavy else None)


def _canonical(params: Mapping[str, Any], *, without: frozenset[str] = frozenset()) -> str:
    return json.dumps({key: value for key, value in params.items() if key not in without}, sort_keys=True)
