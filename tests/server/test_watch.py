from __future__ import annotations

import asyncio

from tdbg_lab.server.watch import FolderWatch


async def next_call(event):
    await asyncio.wait_for(event.wait(), 5)
    event.clear()


def test_changes_reach_who_asked_for_that_folder(tmp_path):
    async def scene():
        folders = [tmp_path / name for name in "ab"]
        for folder in folders:
            (folder / "deep").mkdir(parents=True)
        watch = FolderWatch(asyncio.get_running_loop(), recursive=True)
        events = [asyncio.Event(), asyncio.Event()]
        for folder, event in zip(folders, events, strict=True):
            watch.add([folder], event.set)
        await asyncio.sleep(0.3)
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
        await asyncio.sleep(0.3)
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
        await asyncio.sleep(0.3)
        (tmp_path / "file").write_text("x")
        await next_call(event)
        watch.close()

    asyncio.run(scene())
