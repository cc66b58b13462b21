from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import tdbg_lab.server.watch as module
from tdbg_lab.server.watch import FolderWatch
from tests.threads import no_more_threads


async def next_call(event):
    await asyncio.wait_for(event.wait(), 5)
    event.clear()


async def all_stand(events):
    """Wait for the calls that tell that folders are watched; with several `add`, the last ones count."""
    for event in events:
        await next_call(event)
    await asyncio.sleep(0.3)
    for event in events:
        event.clear()


def test_who_asks_is_called_when_the_watch_stands_and_again_after_other_folders_came(tmp_path):
    """What happens before a watch stands is told by nobody else."""

    async def scene():
        folders = [tmp_path / name for name in "ab"]
        for folder in folders:
            folder.mkdir()
        watch = FolderWatch(asyncio.get_running_loop(), recursive=False)
        first, second = asyncio.Event(), asyncio.Event()
        watch.add(folders[:1], first.set)
        await next_call(first)
        watch.add(folders[1:], second.set)
        await next_call(first)
        await next_call(second)
        watch.close()

    asyncio.run(scene())


def test_watch_begins_once_a_thread_may_be_started(tmp_path):
    async def scene():
        watch = FolderWatch(asyncio.get_running_loop(), recursive=False)
        event = asyncio.Event()
        with no_more_threads():
            watch.add([tmp_path], event.set)
        watch.add([tmp_path], event.set)
        await next_call(event)
        watch.close()

    asyncio.run(scene())


def test_watch_that_failed_is_tried_again(tmp_path, monkeypatch):
    really, failures = module.watch, [OSError("no watches left")]

    def fail_once(*args, **kwargs):
        if failures:
            raise failures.pop()
        return really(*args, **kwargs)

    monkeypatch.setattr(module, "watch", fail_once)
    monkeypatch.setattr(module, "RETRY_S", 0.05)

    async def scene():
        watch = FolderWatch(asyncio.get_running_loop(), recursive=False)
        event = asyncio.Event()
        watch.add([tmp_path], event.set)
        await next_call(event)
        watch.close()

    asyncio.run(scene())
    assert failures == []


def test_folder_of_a_file_system_that_fails_ends_no_other_watch(tmp_path, monkeypatch):
    is_dir = Path.is_dir

    def fail(path):
        if path.name == "stale":
            raise OSError(errno.ESTALE, "Stale file handle", str(path))
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", fail)

    async def scene():
        watch = FolderWatch(asyncio.get_running_loop(), recursive=False)
        event = asyncio.Event()
        watch.add([tmp_path, tmp_path / "stale"], event.set)
        await next_call(event)
        watch.close()

    asyncio.run(scene())


def test_changes_reach_who_asked_for_that_folder(tmp_path):
    async def scene():
        folders = [tmp_path / name for name in "ab"]
        for folder in folders:
            (folder / "deep").mkdir(parents=True)
        watch = FolderWatch(asyncio.get_running_loop(), recursive=True)
        events = [asyncio.Event(), asyncio.Event()]
        for folder, event in zip(folders, events, strict=True):
            watch.add([folder], event.set)
        await all_stand(events)
        (folders[0] / "deep" / "file").write_text("x")
        await next_call(events[0])
        assert not events[1].is_set()
        watch.close()

    asyncio.run(scene())


def test_removed_watch_is_silent_and_removing_twice_does_no_harm(tmp_path):
    async def scene():
        watch = FolderWatch(asyncio.get_running_loop(), recursive=False)
        kept, gone = asyncio.Event(), asyncio.Event()
        watch.add([tmp_path], kept.set)
        remove = watch.add([tmp_path], gone.set)
        remove()
        remove()
        await next_call(kept)
        gone.clear()
        (tmp_path / "file").write_text("x")
        await next_call(kept)
        assert not gone.is_set()
        watch.close()
        watch.close()

    asyncio.run(scene())


def test_missing_folder_is_no_error(tmp_path):
    async def scene():
        watch = FolderWatch(asyncio.get_running_loop(), recursive=True)
        event = asyncio.Event()
        watch.add([tmp_path / "missing"], event.set)
        watch.add([tmp_path], event.set)
        await next_call(event)
        (tmp_path / "file").write_text("x")
        await next_call(event)
        watch.close()

    asyncio.run(scene())
