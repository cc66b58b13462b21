"""Draw views in threads; keep drawn figures; start jobs for those that have to be prepared."""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tdbg_lab.server.jobs import Job, JobTask
from tdbg_lab.server.memory import FreedMemory
from tdbg_lab.server.turns import ShortTurns

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from concurrent.futures import Executor

    from tdbg_lab.run import Run
    from tdbg_lab.server.jobs import Jobs
    from tdbg_lab.server.roots import Entry
    from tdbg_lab.server.wire import PendingJson

__all__ = ["Figures"]

MAX_PREPARED = 16
"""Preparations kept, for the next picture and as a start for the next preparation."""
MAX_REST_S = 10.0
"""The next preparation of a picture that follows a run waits as long as the last one took, at most this."""
MOVING = frozenset({"step", "n_out", "window_s"})
"""Parameters that choose what is shown of a preparation; preparations are shared between their values."""
_Key = tuple[str, str, str]
"""Id of the run, view, parameters."""
_State = tuple[int, int, tuple[tuple[int, int], ...]]
"""Version of the run, number of its preparation, version and last step of each other run in the figure."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A figure, as it goes over the wire."""

    figure: bytes
    """Plotly JSON."""
    incomplete: bool
    """Whether it stands in for one that has to be prepared."""
    checked: Mapping[str, Any]
    """Complete parameters."""


@dataclass(slots=True)
class _Prepared:
    """What is known of the preparations of one picture."""

    data: Any = None
    """What the last successful job answered."""
    serial: int = 0
    """Number of successful jobs."""
    failed: tuple[int, str] | None = None
    """Version of the run and parameters of the last job, if it failed or was cancelled."""
    rested_s: float = 0.0
    """Monotonic time until which the next one waits."""
    complete: bytes | None = None
    """The last complete figure that followed the run."""


class Figures:
    """Figures of views.

    The last figure of each run, view and parameters is kept until the run moves on; the same request
    made twice at a time is drawn once. A view that has to be prepared is answered with what there is -
    the last complete figure when it follows the run, else what the view can show at once - and a job
    makes the next one.
    """

    def __init__(self, jobs: Jobs, *, pool: Executor, cache_bytes: int) -> None:
        self._jobs = jobs
        self._pool = pool
        self._cache_bytes = cache_bytes
        self._cache: OrderedDict[_Key, tuple[_State, _Drawn]] = OrderedDict()
        self._cached_bytes = 0
        self._drawing: dict[Hashable, asyncio.Future[_Drawn]] = {}
        self._prepared: OrderedDict[Hashable, _Prepared] = OrderedDict()
        self._freed = FreedMemory()
        self._turns = ShortTurns()

    async def answer(
        self,
        entry: Entry,
        run: Run,
        view: str,
        params: Mapping[str, Any],
        others: Mapping[str, Run | tuple[Run, ...]] | None = None,
    ) -> bytes:
        """The answer to a request for a figure, as JSON.

        Parameters
        ----------
        others
            The runs whose ids stand in `params`, by name of the parameter: one, or several.

        Raises
        ------
        NotFoundError
            When there is no such view.
        ConfigError
            When a parameter does not fit.
        """
        started = time.monotonic()
        version = run.version
        # a run that took the place of another has its entry, and nothing that was prepared of it
        base = (entry.id, run.info.id, view, _canonical(params, without=MOVING))
        known = self._prepared.get(base) or _Prepared()
        opened = others or {}
        several = [each if isinstance(each, tuple) else (each,) for each in opened.values()]
        beside = tuple((each.version, each.last_step) for runs in several for each in runs)
        key, state = (entry.id, view, _canonical(params)), (version, known.serial, beside)
        drawn = self._kept(key, state)
        if drawn is None:
            drawn = await self._draw_once((key, state), run, view, {**params, **opened}, known.data)
            self._keep(key, state, drawn)
        figure, pending = drawn.figure, None
        if drawn.incomplete:
            pending = self._pending(base, version, JobTask(entry.directory, view, drawn.checked))
            follows = params.get("step") is None
            figure = known.complete if follows and known.complete is not None else figure
        elif known.serial and params.get("step") is None:
            known.complete = figure
        rest = {"version": version, "pending": pending, "ms": round((time.monotonic() - started) * 1e3, 1)}
        return b'{"figure":' + figure + b"," + json.dumps(rest).encode()[1:]

    async def _draw_once(
        self, key: Hashable, run: Run, view: str, params: Mapping[str, Any], prepared: Any
    ) -> _Drawn:
        drawing = self._drawing.get(key)
        if drawing is None:
            loop = asyncio.get_running_loop()
            drawing = loop.run_in_executor(self._pool, self._draw, run, view, params, prepared)
            self._drawing[key] = drawing
            drawing.add_done_callback(lambda _: self._drawing.pop(key, None))
        return await asyncio.shield(drawing)

    def _draw(self, run: Run, view: str, params: Mapping[str, Any], prepared: Any) -> _Drawn:
        try:
            with self._turns:
                return _draw(run, view, params, prepared)
        finally:
            self._freed.give_back()

    def _kept(self, key: _Key, state: _State) -> _Drawn | None:
        """The kept figure, if it is of these versions of the runs and of its preparation."""
        kept = self._cache.get(key)
        if kept is None or kept[0] != state:
            return None
        self._cache.move_to_end(key)
        return kept[1]

    def _keep(self, key: _Key, state: _State, drawn: _Drawn) -> None:
        """Keep a figure; those of the same run as it was before are never asked for again."""
        run, version = key[0], state[0]
        for old in [one for one, (kept, _) in self._cache.items() if one[0] == run and kept[0] < version]:
            self._forget(old)
        if key in self._cache:
            self._forget(key)
        self._cached_bytes += len(drawn.figure)
        self._cache[key] = (state, drawn)
        while self._cached_bytes > self._cache_bytes and self._cache:
            self._forget(next(iter(self._cache)))

    def _forget(self, key: _Key) -> None:
        self._cached_bytes -= len(self._cache.pop(key)[1].figure)

    def _pending(self, base: Hashable, version: int, task: JobTask) -> PendingJson | None:
        """The job that makes the complete picture, started if need be; None when it failed before."""
        job = self._jobs.find(base)
        if job is not None:
            return job.pending
        known = self._known(base)
        attempt = (version, _canonical(task.params))
        if known.failed == attempt:
            return None
        task.previous = known.data
        started = time.monotonic()

        def keep(data: Any) -> None:
            known.data, known.failed = data, None
            known.serial += 1
            now = time.monotonic()
            known.rested_s = now + min(MAX_REST_S, now - started)

        def give_up() -> None:  # not again before the run has moved on
            known.failed = attempt

        follows = task.params.get("step") is None
        job = Job(base, task, keep, give_up, not_before_s=known.rested_s if follows else 0.0)
        self._jobs.start(job)
        return job.pending

    def _known(self, base: Hashable) -> _Prepared:
        known = self._prepared.setdefault(base, _Prepared())
        self._prepared.move_to_end(base)
        while len(self._prepared) > MAX_PREPARED:
            self._prepared.popitem(last=False)
        return known


def _draw(run: Run, view: str, params: Mapping[str, Any], prepared: Any) -> _Drawn:
    from tdbg_lab.views import call_view, check_params, figure_json, needs_preparing

    checked = check_params(run, view, params)
    figure = call_view(run, view, params, prepared=prepared, wait=False)
    meta = figure.layout.meta if isinstance(figure.layout.meta, dict) else {}
    stands_in = bool(meta.get("tdbg", {}).get("pending", prepared is None))
    incomplete = needs_preparing(run, view, params) and stands_in
    # What is no Unicode, as in an expression that was asked for, is written as an escape that JSON knows.
    return _Drawn(figure_json(figure).encode(errors="backslashreplace"), incomplete, checked)


def _canonical(params: Mapping[str, Any], *, without: frozenset[str] = frozenset()) -> str:
    kept = {key: value for key, value in params.items() if key not in without}
    return json.dumps(kept, sort_keys=True, default=str)
