"""When the disk is full, read-only or gone: told once, and what was acknowledged stays readable."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager

import numpy as np
import pytest

from tdbg_lab.errors import StoreError
from tdbg_lab.records import Mode
from tdbg_lab.run import open_run
from tdbg_lab.store import (
    FindingsWriter,
    RankWriter,
    RunFolder,
    SystemWriter,
    create_run,
    outage,
    request,
    stream,
)
from tdbg_lab.store.raw_writer import RawWriter

from .rows import rows


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 kB, or a limit of 64 kB on the size of a file where none can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode == 0:
        yield disk
        subprocess.run(["umount", "-l", str(disk)], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))
    yield disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, old)


def append_until_it_fails(writer: RankWriter) -> int:
    """Steps acknowledged before the first error."""
    for step in range(2000):
        try:
            writer.append(rows(step))
        except StoreError:
            return step
    raise AssertionError("the disk did not fill up")


def test_full_disk_is_told_once_and_acknowledged_steps_are_readable(small_disk):
    path = create_run(small_disk / "run").path
    writer = RankWriter(path)
    done = append_until_it_fails(writer)
    assert done > 5
    for step in range(done, done + 3):
        writer.append(rows(step))  # silent now
    assert writer.dropped["stats"] == 4
    writer.close()
    run = open_run(path)
    assert run.steps().tolist() == list(range(done))
    assert run.problems == []


def test_full_disk_does_not_harm_raw_values_written_before(small_disk):
    path = create_run(small_disk / "run").path
    writer = RankWriter(path)
    writer.write_raw(0, {"x": np.arange(6.0)}, mode=Mode.TRAIN)
    writer.flush()
    writer.write_raw(1, {"x": np.zeros(100_000)}, mode=Mode.TRAIN)
    writer.flush()
    with pytest.raises(StoreError, match="raw values"):
        writer.write_raw(2, {"x": np.zeros(3)}, mode=Mode.TRAIN)
    writer.write_raw(3, {"x": np.zeros(3)}, mode=Mode.TRAIN)  # told once
    writer.close()
    run = open_run(path)
    assert run.raw_steps("x") == [0]
    assert run.tensor("x").value(0).tolist() == [0, 1, 2, 3, 4, 5]
    assert [entry.name for entry in (path / "rank-00000" / "raw").iterdir()] == [
        "step-000000000000.safetensors"
    ]


@pytest.fixture
def at_once(monkeypatch):
    """A writer that failed tries again at the next write."""
    monkeypatch.setattr(outage, "RETRY_S", 0.0)


@pytest.mark.usefixtures("at_once")
def test_writing_goes_on_when_a_full_disk_has_room_again(small_disk):
    path = create_run(small_disk / "run").path
    filler = small_disk / "filler"
    filler.write_bytes(bytes(128 * 1024))
    writer = RankWriter(path)
    done = append_until_it_fails(writer)
    for step in range(done, done + 20):
        writer.append(rows(step))
    left = [one.name for one in writer.path.glob("stats-*")]
    assert left == ["stats-000001.arrows"]  # the tries leave nothing behind
    reader = open_run(path)
    assert reader.steps().tolist() == list(range(done))
    assert writer.take_gaps() == []
    filler.unlink()
    _lift_limit()
    for step in range(done + 20, done + 23):
        writer.append(rows(step))
    (gap,) = writer.take_gaps()
    assert gap.startswith("21 batches of stats could not be written (")
    expected = [*range(done), *range(done + 20, done + 23)]
    reader.refresh()
    assert reader.steps().tolist() == expected
    writer.close()
    run = open_run(path)
    assert run.steps().tolist() == expected
    assert run.problems == []
    assert not list(writer.path.glob("*.arrows"))  # what the failure ended is sealed, too


@pytest.mark.usefixtures("at_once")
def test_raw_values_go_on_when_a_full_disk_has_room_again(small_disk):
    path = create_run(small_disk / "run").path
    writer = RankWriter(path)
    writer.write_raw(0, {"x": np.zeros(100_000)}, mode=Mode.TRAIN)
    writer.flush()
    writer.write_raw(1, {"x": np.zeros(3)}, mode=Mode.TRAIN)
    writer.close()
    assert open_run(path).raw_steps("x") == [1]
    (gap,) = writer.take_gaps()
    assert gap.startswith("1 raw values could not be written (")


@pytest.mark.usefixtures("at_once")
def test_writer_whose_run_was_replaced_leaves_the_new_one_alone(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)
    writer.append(rows(0))
    shutil.rmtree(path)
    with pytest.raises(StoreError, match="deleted"):
        writer.append(rows(1))
    new = RankWriter(create_run(tmp_path / "run").path)
    new.append(rows(7))
    for step in range(2, 5):
        writer.append(rows(step))
    new.close()
    writer.close()
    assert open_run(path).steps().tolist() == [7]


def test_tries_of_a_failing_writer_are_few(tmp_path, monkeypatch):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path, seal=False)
    writer.append(rows(0))
    tries = []

    def full(*_arguments: object) -> int:
        tries.append(1)
        raise OSError(28, "No space left on device")

    now = time.monotonic()
    monkeypatch.setattr(stream.os, "write", full)
    with pytest.raises(StoreError):
        writer.append(rows(1))
    for second in range(6 * 3600):
        monkeypatch.setattr(outage.time, "monotonic", lambda at=now + second: at)
        writer.append(rows(2))
    monkeypatch.undo()
    assert len(tries) < 50


def _lift_limit() -> None:
    """Where the small disk is a limit on the size of a file, have it end."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def test_full_disk_while_sealing_leaves_the_live_segment(small_disk):
    path = create_run(small_disk / "run").path
    writer = RankWriter(path)
    writer.append(rows(0))
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError:
                break
    writer.close()
    left = sorted(entry.name for entry in writer.path.iterdir())
    if (
        filler.stat().st_size < 64 * 1024 or "stats-000001.arrows" in left
    ):  # a file limit hits the filler only
        assert left == ["stats-000001.arrows"]
    assert open_run(path).steps().tolist() == [0]


def test_deleted_directory_is_told_once(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)
    sampler = SystemWriter(path)
    writer.append(rows(0))
    sampler.append(1, ["cpu"], ["cpu"], [1.0])
    shutil.rmtree(path)
    with pytest.raises(StoreError, match="deleted"):
        writer.append(rows(1))
    writer.append(rows(2))
    with pytest.raises(StoreError, match="deleted"):
        sampler.append(2, ["cpu"], ["cpu"], [1.0])
    writer.write_raw(3, {"x": np.zeros(3)}, mode=Mode.TRAIN)
    writer.flush()
    writer.close()
    sampler.close()
    assert not path.exists()


def test_deleted_directory_leaves_a_reader_with_what_it_knows(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)
    writer.append(rows(0))
    run = open_run(path)
    shutil.rmtree(path)
    assert run.refresh()
    assert run.info.name == "run"
    assert run.steps().tolist() == []
    assert run.tensor("loss").history("mean").empty
    assert not run.refresh()


@contextmanager
def unprivileged():
    """As a user whom permissions bind."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_read_only_directory_is_told_by_every_writer_and_readable(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)
    writer.append(rows(0))
    writer.close()
    folder = path
    while (
        folder != folder.parent and folder.stat().st_uid == os.getuid()
    ):  # root's folders are closed to others
        folder.chmod(folder.stat().st_mode | 0o055)
        folder = folder.parent
    path.chmod(0o555)
    calls = [
        lambda: RankWriter(path, 1),
        lambda: create_run(path / "sub" / "run"),
        lambda: FindingsWriter(path),
        lambda: request(path, "stop"),
        lambda: open_run(path).edit(name="x"),
        lambda: RunFolder(path).set_status("finished"),
    ]
    with unprivileged():
        for call in calls:
            with pytest.raises(StoreError) as told:
                call()
            assert str(tmp_path) not in str(told.value)
        assert open_run(path).steps().tolist() == [0]
    path.chmod(0o755)


def test_rank_directory_that_becomes_read_only_is_told_at_the_next_segment(tmp_path, monkeypatch):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path, seal=False)
    writer.append(rows(0))
    monkeypatch.setattr(os, "open", denied)
    with writer._stats._lock:
        writer._stats._finish_segment()
    with pytest.raises(StoreError, match="Permission denied"):
        writer.append(rows(1))
    writer.append(rows(2))
    monkeypatch.undo()
    assert open_run(path).steps().tolist() == [0]


def denied(*_arguments: object) -> int:
    raise PermissionError(13, "Permission denied")


def test_writers_of_a_missing_run_say_so(tmp_path):
    for make in (RankWriter, SystemWriter, FindingsWriter):
        with pytest.raises(StoreError):
            make(tmp_path / "nowhere" / "run")


def test_raw_queue_drops_what_it_cannot_hold_and_counts(tmp_path):
    (tmp_path / "rank-00000").mkdir()
    writer = RawWriter(tmp_path / "rank-00000", queue_bytes=100)
    with writer._changed:
        writer._waiting = 90  # as if the thread were behind
    writer.write(0, {"a": np.zeros(4), "b": np.zeros(4)}, Mode.TRAIN, 0)
    assert writer.dropped == 2
    with writer._changed:
        writer._waiting = 0
    writer.write(1, {"a": np.zeros(400)}, Mode.TRAIN, 0)  # larger than the queue, but alone
    writer.close()
    assert writer.dropped == 2
    assert len(list((tmp_path / "rank-00000" / "raw").iterdir())) == 1
