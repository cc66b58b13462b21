from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys

import pytest

from tdbg_lab.errors import NotFoundError
from tdbg_lab.server.frames import write_frame
from tdbg_lab.server.hub import Hub
from tdbg_lab.server.jobs import MAX_QUEUED, Job, Jobs, JobTask
from tdbg_lab.testing import fake_run
from tests.threads import no_more_threads


class Bench:
    """Jobs with everything they told."""

    def __init__(self, workers=1):
        self.messages = []
        hub = Hub(on_first=lambda: None, on_last=lambda: None)
        hub.broadcast = lambda _topic, message: self.messages.append(message)
        self.jobs = Jobs(hub, workers=workers)
        self.results = []
        self.failures = []

    def start(self, path, key="a", view="latent", **params):
        params = {"method": "tsne", "perplexity": 5, **params}
        job = Job(key, JobTask(path, view, params), self.results.append, lambda: self.failures.append(key))
        self.jobs.start(job)
        return job

    async def end_of(self, *jobs, timeout_s=60):
        async def wait():
            while any(job.state in {"queued", "running"} for job in jobs):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

        await asyncio.wait_for(wait(), timeout_s)


@pytest.fixture
def path(tmp_path):
    return fake_run(tmp_path / "run", steps=11, layers=1)


def test_job_answers_and_its_worker_is_used_again(path):
    async def scene():
        bench = Bench()
        first = bench.start(path, "a")
        await bench.end_of(first)
        pid = first.worker.pid
        second = bench.start(path, "b")
        await bench.end_of(second)
        await bench.jobs.aclose()
        return bench, first, second, pid

    bench, first, second, pid = asyncio.run(scene())
    assert (first.state, second.state, len(bench.results)) == ("done", "done", 2)
    assert second.worker.pid == pid
    assert bench.messages[-1]["progress"] == 1.0


def test_failing_job_says_why(path):
    async def scene():
        bench = Bench()
        job = bench.start(path, view="nonsense")
        await bench.end_of(job)
        await bench.jobs.aclose()
        return bench, job

    bench, job = asyncio.run(scene())
    assert job.state == "failed"
    assert "nonsense" in job.message
    assert bench.failures == ["a"]


def test_killed_worker_fails_its_job_and_the_next_one_runs(path):
    async def scene():
        bench = Bench()
        first, second = bench.start(path, "a"), bench.start(path, "b")
        await asyncio.sleep(0.05)
        os.kill(first.worker.pid, signal.SIGKILL)
        await bench.end_of(first, second)
        await bench.jobs.aclose()
        return first, second

    first, second = asyncio.run(scene())
    assert (first.state, second.state) == ("failed", "done")


def test_worker_that_ends_in_the_middle_of_a_frame_makes_room_for_the_next(path, monkeypatch):
    """As one does that is killed for its memory while it hands over what it made."""
    torn = "import sys; sys.stdout.buffer.write((100).to_bytes(8, 'little') + b'cut')"
    commands = iter([[sys.executable, "-c", torn]])
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **how: start(next(commands, command), **how))

    async def scene():
        bench = Bench()
        first, second = bench.start(path, "a"), bench.start(path, "b")
        await bench.end_of(first, second)
        await bench.jobs.aclose()
        return first, second

    first, second = asyncio.run(scene())
    assert (first.state, first.message) == ("failed", "The worker process ended unexpectedly")
    assert second.state == "done"


def test_worker_that_cannot_go_on_ends_instead_of_keeping_its_job_waiting():
    """As when the package is replaced by another version under a running server."""
    command = [sys.executable, "-m", "tdbg_lab.server.worker"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        write_frame(process.stdin, {"no": "job"})
        assert process.wait(60) == 1
        assert b"KeyError" in process.stderr.read()
    finally:
        process.kill()
        process.communicate()


def test_job_that_gets_no_process_fails_and_the_next_one_runs(path, monkeypatch):
    def refuse(*_args, **_how):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    async def scene():
        bench = Bench()
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "Popen", refuse)
            first = bench.start(path, "a")
        second = bench.start(path, "a")
        await bench.end_of(second)
        await bench.jobs.aclose()
        return bench, first, second

    bench, first, second = asyncio.run(scene())
    assert (first.state, first.message) == (
        "failed",
        "No worker process can be started: Cannot allocate memory",
    )
    assert (second.state, bench.failures) == ("done", ["a"])


def test_job_whose_worker_gets_no_thread_fails_and_the_next_one_runs(path):
    async def scene():
        bench = Bench()
        with no_more_threads():
            first = bench.start(path, "a")
        second = bench.start(path, "a")
        await bench.end_of(second)
        await bench.jobs.aclose()
        return first, second

    first, second = asyncio.run(scene())
    assert (first.state, first.message) == (
        "failed",
        "No worker process can be started: no more threads may be started",
    )
    assert second.state == "done"


def test_queue_is_bounded_and_the_newest_stay(path):
    async def scene():
        bench = Bench()
        jobs = [bench.start(path, number) for number in range(MAX_QUEUED + 5)]
        states = [job.state for job in jobs]
        for job in jobs:
            if job.state in {"queued", "running"}:
                bench.jobs.cancel(job.id)
        with pytest.raises(NotFoundError):
            bench.jobs.cancel(jobs[0].id)
        await bench.jobs.aclose()
        return states

    states = asyncio.run(scene())
    assert states[0] == "running"
    assert states.count("queued") == MAX_QUEUED
    assert states[1] == "cancelled"
    assert states[-1] == "queued"


def test_closing_ends_the_processes(path):
    async def scene():
        bench = Bench()
        job = bench.start(path)
        await asyncio.sleep(0.05)
        await bench.jobs.aclose()
        return job.worker.pid

    pid = asyncio.run(scene())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
