"""Work that somebody asked for, and whose result is fetched once it is done."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import ConflictError, NotFoundError
from tdbg_lab.server.jobs import Job, as_told

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tdbg_lab.server.jobs import Jobs, Task
    from tdbg_lab.server.wire import AskedJson

__all__ = ["MAX_KEPT", "AskedJobs"]

MAX_KEPT = 32
"""Jobs whose results are kept."""
MAX_UNDER_WAY = 4
"""Jobs that run or wait at a time."""


@dataclass(slots=True)
class _Kept:
    """A job and what it made."""

    drop: Callable[[], None]
    job: Job = field(init=False)
    result: dict[str, Any] | None = None

    def take(self, result: dict[str, Any]) -> None:
        """What the worker made."""
        self.result = result


class AskedJobs:
    """Jobs under way, and the results of the latest ones until they are fetched and a while longer."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def start(self, key: Hashable, task: Task, *, drop: Callable[[], None] | None = None) -> AskedJson:
        """Start a job, or join the one under way for `key`.

        Parameters
        ----------
        drop
            Called when the result is no longer kept, or there will be none. Never called when a job is
            joined.

        Raises
        ------
        ConflictError
            When too many are under way.
        """
        job = self._jobs.find(key)
        if job is None:
            self._require_room()
            kept = _Kept(drop or _nothing)
            job = kept.job = Job(key, task, kept.take, kept.drop)
            self._kept[job.id] = kept
            while len(self._kept) > MAX_KEPT:
                _, old = self._kept.popitem(last=False)
                old.drop()
            self._jobs.start(job)
        return self.told(job.id)

    def job(self, job_id: str) -> Job:
        """A job under way, or one of the latest.

        Raises
        ------
        NotFoundError
            When there is none, or it ended long ago.
        """
        return self._find(job_id).job

    def told(self, job_id: str) -> AskedJson:
        """Where a job stands; its result once it is done.

        Raises
        ------
        NotFoundError
            As `job`.
        """
        kept = self._find(job_id)
        return {**as_told(kept.job), "result": kept.result}

    def _find(self, job_id: str) -> _Kept:
        kept = self._kept.get(job_id)
        if kept is None:
            raise NotFoundError("There is no such work, or it ended long ago: start it again.")
        return kept

    def _require_room(self) -> None:
        under_way = sum(kept.job.state in {"queued", "running"} for kept in self._kept.values())
        if under_way >= MAX_UNDER_WAY:
            raise ConflictError(
                f"{under_way} checks and reports are under way; wait until one has ended, or cancel it."
            )


def _nothing() -> None:
    """Nothing is to be thrown away."""
