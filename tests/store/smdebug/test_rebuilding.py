"""Stores whose folder ``index`` is missing: what it told is looked up in the event files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.run import list_runs, open_run
from tdbg_lab.store.smdebug import SmdebugStore
from tests.store.smdebug.writing import StoreWriter

if TYPE_CHECKING:
    from tdbg_lab.store.smdebug.index_file import IndexFile

DATA = Path(__file__).parents[2] / "data" / "smdebug"
RECORDED = [
    *("dtypes", "estimator", "mxnet", "pytorch", "reductions", "session"),
    *("tensorflow", "tensorflow_tape", "workers", "xgboost"),
]
SENTENCE = "The folder index is missing or empty, so the tensors were looked up in the event files"


def told(file: IndexFile) -> tuple[object, ...]:
    """All that an index file says of values."""
    places = file.places.starts.tolist(), file.places.lengths.tolist()
    return file.step, file.worker, file.mode, file.mode_step, file.event_file, file.layout.records, *places


@pytest.mark.parametrize("name", RECORDED)
def test_event_files_of_every_framework_tell_what_their_index_told(tmp_path, name):
    whole = SmdebugStore(DATA / name)
    shutil.copytree(DATA / name, tmp_path / name, ignore=shutil.ignore_patterns("index"))
    rebuilt = SmdebugStore(tmp_path / name)
    expected = [told(file) for file in whole.files if file.event_file is not None]
    assert [told(file) for file in rebuilt.files] == expected
    assert expected
    (problem,) = rebuilt.problems
    assert problem.startswith(SENTENCE)
    for file in rebuilt.files:
        for tensor in file.layout.values:
            ours = rebuilt.value(tensor, file.step, file.worker)
            np.testing.assert_array_equal(ours, whole.value(tensor, file.step, file.worker))


@pytest.mark.parametrize("left_out", [(), ("index",)])
def test_store_is_read_where_the_system_cannot_read_from_a_place(tmp_path, monkeypatch, left_out):
    """Windows has neither `os.pread` nor `os.preadv`."""
    whole = SmdebugStore(DATA / "pytorch")
    expected = [whole.values(name) for name in whole.names()]
    monkeypatch.delattr(os, "pread")
    monkeypatch.delattr(os, "preadv")
    shutil.copytree(DATA / "pytorch", tmp_path / "job", ignore=shutil.ignore_patterns(*left_out))
    store = SmdebugStore(tmp_path / "job")
    for name, values in zip(whole.names(), expected, strict=True):
        np.testing.assert_equal(store.values(name), values)


def test_run_without_index_is_opened_and_listed_with_its_steps(tmp_path):
    shutil.copytree(DATA / "pytorch", tmp_path / "job", ignore=shutil.ignore_patterns("index"))
    run, whole = open_run(tmp_path / "job"), open_run(DATA / "pytorch")
    assert run.tensor_names() == whole.tensor_names()
    assert run.last_step == whole.last_step
    assert run.info.created_ns == whole.info.created_ns
    assert [one.last_step for one in list_runs(tmp_path)] == [whole.last_step]
    (problem,) = run.problems
    assert problem.startswith(SENTENCE)


def test_empty_index_is_as_good_as_none(tmp_path):
    writer = StoreWriter(tmp_path / "store")
    writer.write(3, {"x": np.float32(1)})
    shutil.rmtree(writer.path / "index")
    (writer.path / "index").mkdir()
    store = SmdebugStore(writer.path)
    assert store.steps() == [3]
    assert store.problems[0].startswith(SENTENCE)
    writer.write(4, {"x": np.float32(2)})
    assert store.refresh()
    assert store.steps() == [4], "the index counts as soon as there is one"
    assert store.problems == []


def test_index_that_comes_later_takes_the_place_of_what_was_looked_up(tmp_path):
    writer = StoreWriter(tmp_path / "store")
    for step in range(3):
        writer.write(step, {"x": np.float32(step)}, shapes={"only.shape": (2, 3)})
    index = (writer.path / "index").rename(tmp_path / "index")
    store = SmdebugStore(writer.path)
    assert store.names() == ["x"]
    assert store.steps() == [0, 1, 2]
    index.rename(writer.path / "index")
    assert store.refresh()
    assert store.names() == ["only.shape", "x"]
    assert store.shape("only.shape", 1) == (2, 3)
    assert store.problems == []


def test_large_records_with_long_names_are_found_without_reading_them(tmp_path, monkeypatch):
    from tdbg_lab.store.smdebug import rebuilding

    writer = StoreWriter(tmp_path / "store")
    long = "layer." * 168
    writer.write(7, {"big": np.ones((300, 300), np.float32), long: np.ones(3)}, mode="EVAL", mode_step=2)
    shutil.rmtree(writer.path / "index")
    read = []
    pread = rebuilding.os.pread
    monkeypatch.setattr(rebuilding.os, "pread", lambda *a: read.append(a[1]) or pread(*a))
    store = SmdebugStore(writer.path)
    monkeypatch.undo()
    assert store.names("EVAL") == ["big", long]
    assert store.mode_step(7) == ("EVAL", 2)
    assert sum(read) < 20_000


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"\x01" * 64, lambda _: b"12345"])
def test_broken_event_file_without_index_is_said_and_the_others_are_read(tmp_path, damage):
    writer = StoreWriter(tmp_path / "store")
    for step in range(2):
        writer.write(step, {"x": np.float32(step)})
    shutil.rmtree(writer.path / "index")
    (file,) = (writer.path / "events" / f"{1:012d}").iterdir()
    good = file.read_bytes()
    file.write_bytes(damage(good))
    store = SmdebugStore(writer.path)
    assert store.steps() == [0]
    assert any(f"The event file {file.name} cannot be read: " in one for one in store.problems)
    file.write_bytes(good)
    assert store.refresh()
    assert store.steps() == [0, 1]


def test_store_of_collections_alone_says_what_is_missing(tmp_path):
    writer = StoreWriter(tmp_path / "store")
    writer.write(0, {"x": np.float32(0)})
    for folder in ("index", "events"):
        shutil.rmtree(writer.path / folder)
    assert SmdebugStore(writer.path).problems == []  # a job that has just begun
    writer.end()
    (problem,) = open_run(writer.path).problems
    assert problem == (
        "The folders index and events are missing, so there are no tensors: copy both from where the job "
        "wrote them."
    )
