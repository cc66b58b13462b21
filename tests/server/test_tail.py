from __future__ import annotations

import asyncio
import errno
import logging
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from tdbg_lab.errors import NotFoundError
from tdbg_lab.records import RunStatus
from tdbg_lab.server.roots import entry, make_roots
from tdbg_lab.server.tail import RunTail
from tdbg_lab.server.tails import Tails
from tdbg_lab.server.watch import FolderWatch
from tdbg_lab.testing import fake_run
from tdbg_lab.testing.fake import FakeTraining


class BlindWatch:
    """A file system without events."""

    def add(self, _folders, _callback):
        return lambda: None


class Bench:
    """Tails on runs below a folder, without a server."""

    def __init__(self, folder, *, watch=None, poll_interval_s=0.05, **options):
        (self.root,) = make_roots([], str(folder))
        self.pool = ThreadPoolExecutor(2)
        self.watch = watch or BlindWatch()
        self.poll_interval_s = poll_interval_s
        self.made = 0
        self.tails = Tails(self._make, **{"close_delay_s": 0.0, **options})

    def _make(self, found):
        self.made += 1
        return RunTail(found, pool=self.pool, watch=self.watch, poll_interval_s=self.poll_interval_s)

    def entry(self, name):
        return entry(self.root, name)

    async def aclose(self):
        await self.tails.aclose()
        self.pool.shutdown()


async def until(condition, timeout_s=10.0):
    async def wait():
        while not condition():  # noqa: ASYNC110 - the condition has no event
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), timeout_s)


def test_growing_run_is_followed_without_file_events(tmp_path):
    async def scene():
        training = FakeTraining(tmp_path / "run")
        bench = Bench(tmp_path)
        seen = []
        tail = bench.tails.acquire(bench.entry("run"))
        tail.subscribe(lambda tail: seen.append(tail.digest.last_step), 0.01)
        await tail.opened()
        for _ in range(3):
            step = training.step()
            await until(lambda step=step: seen and seen[-1] == step)
        training.end("finished")
        await until(lambda: tail.digest.status is RunStatus.FINISHED)
        await bench.aclose()
        return seen

    seen = asyncio.run(scene())
    assert seen[0] == -1
    assert seen == sorted(seen)


def test_file_events_wake_a_tail_that_would_not_poll(tmp_path):
    async def scene():
        training = FakeTraining(tmp_path / "run")
        watch = FolderWatch(asyncio.get_running_loop(), recursive=True)
        bench = Bench(tmp_path, watch=watch, poll_interval_s=1000.0)
        tail = bench.tails.acquire(bench.entry("run"))
        tail.subscribe(lambda _: None, 0.01)
        await tail.opened()
        await asyncio.sleep(0.3)  # until the thread watches
        training.step()
        await until(lambda: tail.digest.last_step == 0)
        await bench.aclose()
        watch.close()
        training.end()

    asyncio.run(scene())


def test_everybody_shares_one_tail_and_the_last_closes_it(tmp_path):
    fake_run(tmp_path / "run", steps=2)

    async def scene():
        bench = Bench(tmp_path)
        found = bench.entry("run")
        first, second = bench.tails.acquire(found), bench.tails.acquire(found)
        assert first is second
        bench.tails.release(found)
        await asyncio.sleep(0.05)
        assert bench.tails.get(found.id) is first
        bench.tails.release(found)
        await until(lambda: bench.tails.get(found.id) is None)
        await bench.aclose()
        return bench.made

    assert asyncio.run(scene()) == 1


def test_tail_that_is_needed_again_in_time_stays_open(tmp_path):
    fake_run(tmp_path / "run", steps=2)

    async def scene():
        bench = Bench(tmp_path, close_delay_s=0.2)
        for _ in range(3):
            async with bench.tails.lease(bench.entry("run")) as tail:
                await tail.opened()
            await asyncio.sleep(0.01)
        await bench.aclose()
        return bench.made

    assert asyncio.run(scene()) == 1


def test_idle_tails_are_bounded(tmp_path):
    for number in range(6):
        fake_run(tmp_path / str(number), steps=1)

    async def scene():
        bench = Bench(tmp_path, close_delay_s=100.0, max_idle=2)
        for number in range(6):
            async with bench.tails.lease(bench.entry(str(number))) as tail:
                await tail.opened()
        left = [number for number in range(6) if bench.tails.get(bench.entry(str(number)).id)]
        await bench.aclose()
        return left

    assert asyncio.run(scene()) == [4, 5]


def test_removed_run_is_told_and_can_come_back(tmp_path):
    path = fake_run(tmp_path / "run", steps=2)

    async def scene():
        bench = Bench(tmp_path)
        told = []
        tail = bench.tails.acquire(bench.entry("run"))
        tail.subscribe(lambda tail: told.append(tail.removed), 0.01)
        await tail.opened()
        shutil.rmtree(path)
        await until(lambda: told and told[-1])
        with pytest.raises(NotFoundError):
            await bench.tails.acquire(bench.entry("run")).opened()
        fake_run(path, steps=5)
        again = bench.tails.acquire(bench.entry("run"))
        last_step = (await again.opened()).last_step
        await bench.aclose()
        return last_step

    assert asyncio.run(scene()) == 4


def test_failing_refresh_is_logged_a_few_times_and_goes_on(tmp_path, monkeypatch, caplog):
    from tdbg_lab.run import Run

    training = FakeTraining(tmp_path / "run")
    broken = []

    async def scene():
        bench = Bench(tmp_path, poll_interval_s=0.01)
        tail = bench.tails.acquire(bench.entry("run"))
        tail.subscribe(lambda _: None, 0.01)
        await tail.opened()
        refresh = Run.refresh

        def fail(run):
            broken.append(1)
            raise RuntimeError("made up")

        monkeypatch.setattr(Run, "refresh", fail)
        await until(lambda: len(broken) > 6)
        monkeypatch.setattr(Run, "refresh", refresh)
        training.step()
        await until(lambda: tail.digest.last_step == 0)
        await bench.aclose()

    with caplog.at_level(logging.ERROR, logger="tdbg_lab"):
        asyncio.run(scene())
    assert len(caplog.records) == 3
    assert "not logged" in caplog.records[-1].getMessage()
    training.end()


def test_tail_goes_on_after_the_file_system_failed_for_a_while(tmp_path, monkeypatch):
    """As one of the network does when its server starts anew."""
    training = FakeTraining(tmp_path / "run")
    asked = []

    async def scene():
        bench = Bench(tmp_path, poll_interval_s=0.01)
        tail = bench.tails.acquire(bench.entry("run"))
        tail.subscribe(lambda _: None, 0.01)
        await tail.opened()

        def fail(path):
            asked.append(path)
            raise OSError(errno.ESTALE, "Stale file handle")

        with monkeypatch.context() as patch:
            patch.setattr("tdbg_lab.server.tail.is_run", fail)
            await until(lambda: len(asked) > 1)
        training.step()
        await until(lambda: tail.digest.last_step == 0)
        await bench.aclose()
        return tail.removed

    assert not asyncio.run(scene())
    training.end()


def test_reading_does_not_block_the_loop(tmp_path, monkeypatch):
    """While a refresh takes long, the loop goes on."""
    import time

    from tdbg_lab.run import Run

    training = FakeTraining(tmp_path / "run")

    async def scene():
        bench = Bench(tmp_path, poll_interval_s=0.01)
        tail = bench.tails.acquire(bench.entry("run"))
        await tail.opened()
        monkeypatch.setattr(Run, "refresh", lambda _run: time.sleep(1.5))
        longest, end = 0.0, time.monotonic() + 1.0
        while time.monotonic() < end:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            longest = max(longest, time.monotonic() - before)
        await bench.aclose()
        return longest

    assert asyncio.run(scene()) < 1.2
    training.end()


@pytest.mark.parametrize("turns", range(4))
def test_tail_ends_also_when_it_is_woken_at_that_moment(tmp_path, turns):
    async def scene():
        fake_run(tmp_path / "run")
        bench = Bench(tmp_path, poll_interval_s=60)
        tail = bench.tails.acquire(bench.entry("run"))
        await tail.opened()
        await asyncio.sleep(0.05)
        tail.wake()
        for _ in range(turns):
            await asyncio.sleep(0)
        await asyncio.wait({closing := asyncio.ensure_future(tail.aclose())}, timeout=20)
        assert closing.done()
        await bench.aclose()

    asyncio.run(scene())
