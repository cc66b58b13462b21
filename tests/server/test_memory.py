"""Freed memory goes back to the system."""

import psutil
import pyarrow as pa
import pytest

from tdbg_lab.server import memory
from tdbg_lab.server.memory import FreedMemory

_BLOCK = 3000
_BLOCKS = 40_000


def test_what_was_freed_between_kept_blocks_goes_back():
    if memory._malloc_trim() is None:
        pytest.skip("this C library has no malloc_trim")
    before = psutil.Process().memory_info().rss
    blocks = [bytearray(b"x" * _BLOCK) for _ in range(_BLOCKS)]
    grown = psutil.Process().memory_info().rss - before
    kept = blocks[::200]
    del blocks
    assert FreedMemory(every_s=0).give_back()
    left = psutil.Process().memory_info().rss - before
    assert grown > 0.8 * _BLOCK * _BLOCKS
    assert left < 0.5 * grown
    assert len(kept) == _BLOCKS / 200


def test_not_more_often_than_asked_for():
    freed = FreedMemory(every_s=3600)
    assert not freed.give_back()
    assert not freed.give_back()


def test_other_c_libraries_are_left_alone(monkeypatch):
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: object())
    assert FreedMemory(every_s=0).give_back()


async def test_arrow_of_the_server_keeps_no_memory_of_its_own(tdbg_fetch):
    await tdbg_fetch("status")
    assert pa.default_memory_pool().backend_name == "system"
