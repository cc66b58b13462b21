"""Stores with bytes changed at random: reading never fails in another way than it says."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.errors import NotFoundError, StoreError
from tdbg_lab.run import open_run
from tdbg_lab.store.smdebug import SmdebugStore
from tdbg_lab.store.smdebug.index_file import Layouts
from tdbg_lab.store.smdebug.rebuilding import index_of
from tdbg_lab.store.smdebug.record import Decoder
from tests.store.smdebug.writing import StoreWriter, record

if TYPE_CHECKING:
    from pathlib import Path


def changed(data: bytes, chance: random.Random) -> bytes:
    """A few bytes overwritten, inserted, or cut off."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(found))
        match chance.randrange(4):
            case 0:
                found[place] = chance.randrange(256)
            case 1:
                found[place] ^= 1 << chance.randrange(8)
            case 2:
                found[place:place] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 9)))
            case _:
                del found[place : place + chance.randint(1, 9)]
    return bytes(found) or b"x"


@pytest.mark.parametrize("value", [np.arange(12, dtype=np.float32).reshape(3, 4), np.array(["a", "bcd"])])
def test_record_is_read_or_refused(value: np.ndarray) -> None:
    chance = random.Random(7)
    whole = record("some.name", value, step=130, mode="EVAL", mode_step=12, time_s=1.6e9)
    decoder, read, refused = Decoder(), 0, 0
    for _ in range(3000):
        try:
            found = decoder.array(memoryview(changed(whole, chance)), "some.name")
        except ValueError:
            refused += 1
        else:
            read += 1
            assert found.nbytes < 10_000
    assert read
    assert refused
    np.testing.assert_array_equal(decoder.array(memoryview(whole), "some.name"), value)


def test_event_file_that_stands_for_its_index_is_read_or_refused(tmp_path: Path) -> None:
    chance = random.Random(5)
    writer = StoreWriter(tmp_path / "store")
    writer.write(0, {"x": np.arange(9.0), "y": np.array(["a"])}, mode="EVAL", mode_step=3)
    (file,) = (writer.path / "events" / f"{0:012d}").iterdir()
    whole = file.read_bytes()
    assert index_of(file)["meta"]["mode_step"] == "3"
    refused = 0
    for _ in range(1000):
        file.write_bytes(changed(whole, chance))
        try:
            Layouts().take(index_of(file), 0, "worker_0")
        except ValueError:
            refused += 1
    assert 0 < refused < 1000


def test_store_with_broken_files_still_opens(tmp_path: Path) -> None:
    chance = random.Random(3)
    writer = StoreWriter(tmp_path / "store", {"weights": {"include_regex": ["weight"]}})
    for step in range(4):
        writer.write(step, {"a.weight": np.ones((2, 2)), "b": np.float32(step)}, shapes={"c": (3, 4)})
    files = [path for path in writer.path.rglob("*") if path.is_file()]
    whole = {path: path.read_bytes() for path in files}
    for _ in range(40):
        for path in chance.sample(files, 3):
            path.write_bytes(changed(whole[path], chance))
        run = open_run(writer.path)
        run.overview(kind=None, column="mean", also=("q50",))
        for name in run.tensor_names():
            run.tensor(name).values()
        store = SmdebugStore(writer.path)
        for name in store.names():
            for step in store.tensor_steps(name):
                with contextlib.suppress(StoreError, NotFoundError):
                    store.value(name, step)
        for path, data in whole.items():
            path.write_bytes(data)


def test_one_long_text_does_not_take_room_for_all() -> None:
    texts = np.array(["x" * 5000, *["y"] * 20_000], object)
    data = record("t", texts, step=0, mode="TRAIN", mode_step=0, time_s=1.0)
    found = Decoder().array(memoryview(data), "t")
    assert found.dtype == object
    assert found[0] == "x" * 5000
