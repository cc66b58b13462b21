from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.server import catalog as module
from tdbg_lab.server.catalog import Catalog
from tdbg_lab.server.roots import make_roots
from tdbg_lab.stats.block import scalar_block
from tdbg_lab.store import RankWriter
from tdbg_lab.testing import fake_run


@pytest.fixture
def scene(tmp_path):
    """Run `act(catalog)` on an event loop, over the runs below `tmp_path`."""

    def play(act):
        async def run():
            with ThreadPoolExecutor(2) as pool:
                return await act(
                    Catalog(make_roots([str(tmp_path)], str(tmp_path)), pool=pool, depth=3, max_runs=100)
                )

        return asyncio.run(run())

    return play


def test_scan_asked_for_during_another_sees_what_that_one_missed(scene, tmp_path, monkeypatch):
    really, looked, go_on = module.scan, threading.Event(), threading.Event()

    def slow(*args, **kwargs):
        found = really(*args, **kwargs)
        looked.set()
        assert go_on.wait(20)
        return found

    monkeypatch.setattr(module, "scan", slow)

    async def act(catalog):
        first = asyncio.ensure_future(catalog.scan())
        await asyncio.get_running_loop().run_in_executor(None, looked.wait, 20)
        fake_run(tmp_path / "late", steps=1)
        later = [asyncio.ensure_future(catalog.scan()) for _ in range(3)]
        await asyncio.sleep(0)
        go_on.set()
        await first
        before = len(catalog.snapshot.entries)
        await asyncio.gather(*later)
        return before, len(catalog.snapshot.entries)

    assert scene(act) == (0, 1)


def test_steps_of_a_run_that_goes_on_do_not_change_the_list(scene, tmp_path):
    """The list would be told, and asked for, at every look at a training."""
    path = fake_run(tmp_path / "run", steps=0, status="running")
    writer = RankWriter(path, seal=False)

    async def act(catalog):
        await catalog.scan()
        before = catalog.revision
        (begun,) = catalog.snapshot.lines.values()
        writer.append(StatsRows(0, Mode.TRAIN, 0, 1, (TensorKey("loss", Kind.LOSS),), scalar_block([1.0])))
        await catalog.poll()
        (grown,) = catalog.snapshot.lines.values()
        return begun.last_step, grown.last_step, catalog.revision - before

    assert scene(act) == (-1, 0, 0)


def test_folder_that_is_not_ours_to_look_into_hides_nothing_else(scene, tmp_path, monkeypatch):
    fake_run(tmp_path / "mine", steps=1)
    (tmp_path / "theirs" / "system").mkdir(parents=True)  # as the folder of another library's store is called

    def refuse(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("tdbg_lab.server.scan.is_foreign", refuse)

    async def act(catalog):
        await catalog.scan()
        return [found.relative for found in catalog.snapshot.entries.values()]

    assert scene(act) == ["mine"]


def test_root_that_is_not_there_is_named_until_it_is(tmp_path):
    folder = tmp_path / "mounted"

    async def act():
        with ThreadPoolExecutor(2) as pool:
            catalog = Catalog(make_roots([str(folder), str(tmp_path)], "/"), pool=pool, depth=0, max_runs=100)
            await catalog.scan()
            before = catalog.snapshot.unread
            fake_run(folder / "first", steps=1)
            await catalog.scan()
            return before, catalog.snapshot.unread

    assert asyncio.run(act()) == (("mounted",), ())


def test_run_that_is_deleted_while_its_edits_are_read_is_gone(scene, tmp_path, monkeypatch):
    fake_run(tmp_path / "run", steps=1)
    read, reading, go_on = module._read_lines, threading.Event(), threading.Event()

    def slow(*args):
        lines = read(*args)
        reading.set()
        assert go_on.wait(20)
        return lines

    async def act(catalog):
        await catalog.scan()
        (found,) = catalog.snapshot.entries.values()
        monkeypatch.setattr(module, "_read_lines", slow)
        edited = asyncio.ensure_future(catalog.reread(found))
        await asyncio.get_running_loop().run_in_executor(None, reading.wait, 20)
        catalog.forget(found.id)
        go_on.set()
        await edited
        return dict(catalog.snapshot.lines)

    assert scene(act) == {}


def test_revision_grows_with_a_change_whoever_finds_it(scene, tmp_path):
    async def act(catalog):
        await catalog.scan()
        revisions = [catalog.revision]
        fake_run(tmp_path / "new", steps=1)
        catalog._scanned_s = float("-inf")
        await catalog.fresh()  # as a request for the list does
        revisions.append(catalog.revision)
        await catalog.scan()
        revisions.append(catalog.revision)
        return revisions

    assert scene(act) == [0, 1, 1]


def test_full_root_leaves_room_for_the_runs_of_others(tmp_path):
    """A root beyond the bound was all there was, and those behind it were said not to be mounted."""
    for root, count in (("archive", 5), ("mine", 1), ("empty", 0)):
        (tmp_path / root).mkdir()
        for number in range(count):
            fake_run(tmp_path / root / f"run-{number}", steps=1)
    paths = [str(tmp_path / root) for root in ("archive", "mine", "empty", "missing")]

    async def look(max_runs):
        with ThreadPoolExecutor(1) as pool:
            roots = make_roots(paths, str(tmp_path))
            return await Catalog(roots, pool=pool, depth=3, max_runs=max_runs).fresh()

    found = asyncio.run(look(3))
    assert sorted(each.root.name for each in found.entries.values()) == ["archive", "archive", "mine"]
    assert (found.truncated, found.unread) == (True, ("missing",))
    found = asyncio.run(look(6))
    assert (len(found.entries), found.truncated) == (6, False)


def test_place_where_runs_were_mounted_is_not_read_and_one_that_was_emptied_is(scene, tmp_path, monkeypatch):
    path = fake_run(tmp_path / "run", steps=1)
    aside = tmp_path.with_name("aside")
    device = [1]
    monkeypatch.setattr(module, "_device", lambda _path: device[0])

    async def act(catalog):
        told = []
        for move, there in (((path, aside), 2), ((aside, path), 1), ((path, aside), 1)):
            await catalog.scan()
            move[0].rename(move[1])
            device[0] = there
            await catalog.scan()
            told.append((len(catalog.snapshot.entries), len(catalog.snapshot.unread)))
        return told

    assert scene(act) == [(0, 1), (1, 0), (0, 0)]
