"""Freed memory goes back to the system."""

import subprocess
import sys

import psutil
import pyarrow as pa
import pytest

from tdbg_lab.server import memory
from tdbg_lab.server.memory import FreedMemory

_BLOCK = 3000
_BLOCKS = 40_000


def test_what_was_freed_between_kept_blocks_goes_back():
    if memory._of_glibc("malloc_trim") is None:
        pytest.skip("this C library has no malloc_trim")
    FreedMemory(every_s=0).give_back()  # what other tests have left
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


def test_large_blocks_go_back_as_soon_as_they_are_freed():
    """In a process of its own: the allocator is set for all of it."""
    if memory._of_glibc("mallopt") is None:
        pytest.skip("this C library has no mallopt")
    done = subprocess.run(
        [sys.executable, "-c", _LARGE], capture_output=True, text=True, timeout=60, check=True
    )
    left, grown = map(int, done.stdout.split())
    assert grown > 100 * 2**20
    assert left < 0.1 * grown


_LARGE = """
import numpy as np, psutil
from tdbg_lab.server.memory import share_one_allocator
share_one_allocator()
own = psutil.Process()
np.ones(2**21)  # freeing a block of 16 MB teaches glibc to keep such
before = own.memory_info().rss
blocks = [np.ones(2**18) for _ in range(64)]
kept = [bytearray(1000) for _ in range(100)]
grown = own.memory_info().rss - before
del blocks
print(own.memory_info().rss - before, grown)
"""
