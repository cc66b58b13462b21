"""Long work under way: a few worker processes, progress to all clients, cancelling."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tdbg_lab.errors import NotFoundError
from tdbg_lab.server.worker_process import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping
    from pathlib import Path

    from tdbg_lab.server.hub import Hub
    from tdbg_lab.server.wire import JobJson, PendingJson

__all__ = ["Job", "JobTask", "Jobs", "Task", "as_told"]

log = logging.getLogger(__name__)

MAX_QUEUED = 16
"""Jobs that wait for a worker; the oldest gives way."""
GRACE_S = 2.0
"""How long a cancelled job may take to end by itself before its process is killed."""
MAX_JOB_S = 900.0
"""Longest time a job may take."""

State = Literal["queued", "running", "done", "failed", "cancelled"]


class Task(Protocol):
    """What a worker is to do."""

    @property
    def title(self) -> str:
        """What it is, for the log."""

    def request(self) -> dict[str, Any]:
        """What the worker is told; one of its keys says what kind of work it is."""


@dataclass(slots=True)
class JobTask:
    """A view to prepare."""

    path: Path
    view: str
    params: Mapping[str, Any]
    previous: Any = None
    """Data of an earlier preparation."""

    @property
    def title(self) -> str:
        """What it is, for the log."""
        return f"The view {self.view}"

    def request(self) -> dict[str, Any]:
        """What the worker is told."""
        return {
            "path": str(self.path),
            "view": self.view,
            "params": dict(self.params),
            "previous": self.previous,
        }


@dataclass(slots=True, eq=False)
class Job:
    """One task on its way."""

    key: Hashable
    """Two requests for the same thing share a job."""
    task: Task
    on_done: Callable[[Any], None]
    """Called with what the worker made."""
    on_failed: Callable[[], None]
    """Called instead when it failed or was cancelled."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    state: State = "queued"
    progress: float = 0.0
    message: str = "Waiting for a worker"
    not_before_s: float = 0.0
    """Loop time before which it does not start."""
    worker: WorkerProcess | None = None
    timer: asyncio.TimerHandle | None = None

    @property
    def pending(self) -> PendingJson:
        """What the answer to a view's request says about it."""
        return {"job": self.id, "progress": self.progress, "message": self.message}


class Jobs:
    """Runs at most `workers` jobs at once, each in a process of its own that is used again."""

    def __init__(self, hub: Hub, *, workers: int) -> None:
        self._hub = hub
        self._workers = workers
        self._jobs: dict[str, Job] = {}
        self._by_key: dict[Hashable, Job] = {}
        self._alive: set[WorkerProcess] = set()
        self._tasks: set[asyncio.Future[None]] = set()
        self._all_ended = asyncio.Event()
        self._closed = False

    def find(self, key: Hashable) -> Job | None:
        """The job under way for `key`."""
        return self._by_key.get(key)

    def start(self, job: Job) -> None:
        """Queue a job."""
        self._jobs[job.id] = job
        self._by_key[job.key] = job
        waiting = [each for each in self._jobs.values() if each.state == "queued"]
        for old in waiting[:-MAX_QUEUED]:
            self._end(old, "cancelled", "Newer requests took its place")
        self._next()

    def cancel(self, job_id: str) -> None:
        """Cancel a job.

        Raises
        ------
        NotFoundError
            When there is none of that id under way.
        """
        job = self._jobs.get(job_id)
        if job is None:
            raise NotFoundError("There is no such job under way.")
        worker = job.worker
        if worker is not None:
            self._send(worker, {"cancel": job.id})
            asyncio.get_running_loop().call_later(GRACE_S, self._kill_if_busy, worker, job)
        self._end(job, "cancelled", "Cancelled")

    async def aclose(self) -> None:
        """End all workers; twice does no harm."""
        self._closed = True
        for job in list(self._jobs.values()):
            self._end(job, "cancelled", "The server ends")
        for worker in list(self._alive):
            worker.kill()
        if self._alive:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._all_ended.wait(), timeout=5)

    def _next(self) -> None:
        """Give waiting jobs to idle workers."""
        loop = asyncio.get_running_loop()
        for job in [each for each in self._jobs.values() if each.state == "queued"]:
            if job.not_before_s > loop.time():
                loop.call_at(job.not_before_s, self._next)
                continue
            try:
                worker = self._take_worker()
            except OSError as error:
                self._end(job, "failed", f"No worker process can be started: {error.strerror or error}")
                continue
            if worker is None:
                return
            worker.job = job.id
            job.worker, job.state = worker, "running"
            job.message = "Starting"
            job.timer = loop.call_later(MAX_JOB_S, self._too_long, job)
            self._send(worker, {"job": job.id, **job.task.request()})
            self._tell(job)

    def _take_worker(self) -> WorkerProcess | None:
        if self._closed:
            return None
        for worker in self._alive:
            if worker.job is None:
                return worker
        if len(self._alive) >= self._workers:
            return None
        worker = WorkerProcess(on_frame=self._on_frame, on_exit=self._on_exit)
        self._alive.add(worker)
        self._all_ended.clear()
        return worker

    def _send(self, worker: WorkerProcess, frame: Mapping[str, Any]) -> None:
        sent = asyncio.get_running_loop().run_in_executor(None, worker.send, frame)
        self._tasks.add(sent)
        sent.add_done_callback(self._tasks.discard)

    def _on_frame(self, frame: Mapping[str, Any]) -> None:
        job = self._jobs.get(frame["job"])
        if "progress" in frame:
            if job is not None:
                job.progress, job.message = frame["progress"], frame["message"]
                self._tell(job)
            return
        if job is None:  # cancelled meanwhile: its worker is free now
            self._free(frame["job"])
            return
        if "data" in frame:
            job.progress = 1.0
            job.on_done(frame["data"])
            self._end(job, "done", "Done")
        elif frame.get("cancelled"):
            self._end(job, "cancelled", "Cancelled")
        else:
            log.warning("%s failed: %s", job.task.title, frame.get("detail") or frame["error"])
            self._end(job, "failed", frame["error"])
        self._free(job.id)

    def _free(self, job_id: str) -> None:
        """The worker of this job can take the next one."""
        for worker in self._alive:
            if worker.job == job_id:
                worker.job = None
        self._next()

    def _on_exit(self, worker: WorkerProcess) -> None:
        self._alive.discard(worker)
        if not self._alive:
            self._all_ended.set()
        job = self._jobs.get(worker.job or "")
        if job is not None:
            self._end(job, "failed", "The worker process ended unexpectedly")
        if not self._closed:
            self._next()

    def _too_long(self, job: Job) -> None:
        if job.worker is not None:
            job.worker.kill()
        self._end(job, "failed", f"Took longer than {MAX_JOB_S:g} s")

    def _kill_if_busy(self, worker: WorkerProcess, job: Job) -> None:
        if worker.job == job.id:
            worker.kill()

    def _end(self, job: Job, state: State, message: str) -> None:
        if self._jobs.pop(job.id, None) is None:
            return
        if self._by_key.get(job.key) is job:
            del self._by_key[job.key]
        if job.timer is not None:
            job.timer.cancel()
        job.state, job.message = state, message
        if state in {"failed", "cancelled"}:
            job.on_failed()
        self._tell(job)

    def _tell(self, job: Job) -> None:
        self._hub.broadcast(f"job/{job.id}", {"type": "job", **as_told(job)})


def as_told(job: Job) -> JobJson:
    """Where a job stands, for clients."""
    return {"job": job.id, "progress": job.progress, "message": job.message, "state": job.state}
