"""What runs the numba kernels: their readiness, threads and buffers. One engine a process."""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys
import threading
from array import array
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.stats import reference
from tdbg_lab.stats.block import empty_block
from tdbg_lab.stats.call import CALL, JOIN, NUMBERS, PLAN, SWEEP, Call
from tdbg_lab.stats.dtypes import Code
from tdbg_lab.stats.growing import GrowingBlock
from tdbg_lab.stats.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tdbg_lab.records import StatsBlock
    from tdbg_lab.stats.pointers import Memory
    from tdbg_lab.stats.team import Team

__all__ = ["CpuEngine", "engine"]

log = logging.getLogger(__name__)

_PARALLEL_FROM = 1 << 18
"""Elements per thread that are worth waking it: about 0.2 ms of work."""
_SHARE_FROM = 1 << 14
"""Elements per thread that are worth sharing with threads that are awake."""
_SHARES = 2
"""Pieces per thread of what is cut: a thread that is late leaves its share to the others."""
_LEAST_PIECE = 1 << 16
"""Elements below which a tensor is not cut."""
_LEAST_SHARE = 1 << 14
"""The same, among threads that are awake."""
_PIECE_LIMIT = 1 << 30
"""Elements per piece: the 32-bit counters of a histogram must not overflow."""
_ALIGN = 4096
"""Pieces begin at multiples of it within a tensor, so that they are cut into the same `kernels.BLOCK`."""
_MOST_THREADS = 8
_UNUSED = (0,) * (len(CALL) - CALL.index("target") - 1)
_CHILD = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
getattr(os, "nice", int)(10)
from tdbg_lab.stats.engine import engine
engine().compile()
"""
"""An interrupt reaches the whole group of a notebook's kernel: it is meant for the training alone."""
_CHILD_TIMEOUT_S = 600


@cache
def engine() -> CpuEngine:
    """The engine of this process."""
    return CpuEngine()


class CpuEngine:
    """The compiled kernels, their threads and buffers. Safe to call from any thread."""

    def __init__(self) -> None:
        self.ready = False
        """The kernels can be called without delay."""
        self._broken = False
        self._call: Any = None
        self._warming = threading.Lock()
        self._local = threading.local()
        self._pool: ThreadPoolExecutor | None = None
        self._pool_pid = -1
        self._threads = min(_cores(), _MOST_THREADS)

    def usable(self) -> bool:
        """Whether to call the kernels now; False while another thread is warming up, or without numba.

        When nobody is warming up, the caller does.
        """
        if self.ready:
            return True
        if self._broken or not self._warming.acquire(blocking=False):
            return False
        try:
            self._warm_up()
        finally:
            self._warming.release()
        return self.ready

    def warm_up(self) -> None:
        """Make `ready` without burdening this process; never raises.

        Where the cache has no kernels yet, a child process of low priority compiles them: compiling
        here, in a thread, would hold the GIL against training for the better part of half a minute.
        """
        with self._warming:
            if not self.ready and not self._broken:
                self._compile_elsewhere()
                self._warm_up()

    def compile(self) -> None:
        """Make `ready` in this process: load the kernels, or compile and cache them; never raises.

        Of several processes one compiles; the others wait for it and load what it made.
        """
        with self._warming, _turn():
            if not self.ready and not self._broken:
                self._warm_up()

    def _compile_elsewhere(self) -> None:
        try:
            marker = _marker()
            if marker is None or marker.exists() or not sys.executable:
                return
            path = os.pathsep.join(entry for entry in sys.path if entry)
            subprocess.run(
                [sys.executable, "-c", _CHILD],
                env=os.environ | {"PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_CHILD_TIMEOUT_S,
                check=False,
            )
        except Exception:
            log.debug("The kernels could not be compiled in a child process.", exc_info=True)

    def _warm_up(self) -> None:
        try:
            sample = np.linspace(-1.0, 1.0, 64, dtype=np.float32)
            self._call = _load()
            self.measure([(sample.ctypes.data, int(Code.FLOAT32), len(sample), 4, 16)], threads=1)
        except Exception:
            self._broken = True
            log.warning("The numba kernels cannot be used; statistics fall back to numpy.", exc_info=True)
            return
        self.ready = True
        with suppress(OSError):
            if (marker := _marker()) is not None:
                marker.touch()

    def measure(
        self,
        memories: Sequence[Memory | tuple[int, int, int, int, int]],
        *,
        threads: int | None = None,
        team: Team | None = None,
    ) -> StatsBlock:
        """Statistics of blocks of memory, one row each. Call it when `usable`.

        Parameters
        ----------
        memories : sequence of Memory, or of equal tuples
            Alive until the call returns.
        threads : int, optional
            At most so many threads, the caller among them; by default one a core, up to 8.
        team : Team, optional
            Whose threads to use; by default those of a pool of our own.
        """
        if not memories:
            return empty_block()
        rows: GrowingBlock | None = getattr(self._local, "rows", None)
        if rows is None:
            rows = self._local.rows = GrowingBlock()
        rows.clear()
        self.measure_into(rows, memories, threads=threads, team=team)
        return rows.block()

    def measure_into(
        self,
        target: GrowingBlock,
        memories: Sequence[Memory | tuple[int, int, int, int, int]],
        *,
        threads: int | None = None,
        team: Team | None = None,
    ) -> None:
        """`measure`, with the rows added to `target`."""
        self.make(self.prepare(target, memories), target, threads=threads, team=team)

    def prepare(
        self, target: GrowingBlock, memories: Sequence[Memory | tuple[int, int, int, int, int]]
    ) -> Call:
        """The call that adds the rows of these blocks of memory to `target`, for `make`."""
        return Call(self._call or _load(), chain.from_iterable(memories), target.address)

    def make(self, call: Call, target: GrowingBlock, *, threads: int | None, team: Team | None) -> None:
        """Make a call that was prepared for `target`, for the first time or again; see `measure`."""
        first = len(target)
        target.reserve(call.rows, call.bins, call.channels)
        most = self._threads if threads is None else min(threads, _MOST_THREADS)
        wanted = min(most, call.elements // (_PARALLEL_FROM if team is None else _SHARE_FROM)) or 1
        if call.threads != wanted:
            call.divide(wanted, _cut(call.elements, wanted, _LEAST_PIECE if team is None else _LEAST_SHARE))
        space = target.space
        if space is None:
            space = target.space = Workspace()
        space.reserve(call.pieces, call.piece_bins, call.piece_channels, wanted)
        if wanted == 1:
            extreme = call.measure(space.address, 0)
        elif team is not None and team.usable:
            extreme = call.measure(space.address, team.address)
        else:
            call.use(space.address)
            self._make_in_pool(call)
            extreme = call.extreme
        if extreme:
            _measure_again(call, target, first)

    def add_numbers(self, target: GrowingBlock, values: Sequence[float]) -> None:
        """Add rows of one number each to `target`. Call it when `usable`."""
        numbers = array("d", values)
        target.reserve(len(numbers), len(numbers), 0)
        self.call_with(NUMBERS, numbers.buffer_info()[0], len(numbers), target=target.address)

    def call_with(self, what: int, memory: int, rows: int, *, space: int = 0, target: int = 0) -> None:
        """Let the kernels do `what` with these arguments, see `tdbg_lab.stats.call.CALL`."""
        arguments = array("q", (what, memory, rows, 0, space, target, *_UNUSED))
        (self._call or _load()).ctypes(arguments.buffer_info()[0])

    def _make_in_pool(self, call: Call) -> None:
        """Let our own threads take one piece after the other, and join the pieces.

        The caller waits for no thread that has not begun: the other cores may be taken.
        """
        call(PLAN)
        others = [self._submit(call) for _ in range(1, call.threads)]
        try:
            call(SWEEP)
        finally:
            for other in others:
                if not other.cancel():
                    other.result()
        call(JOIN)

    def _submit(self, call: Call) -> Any:
        """Sweep in the pool, too. A forked child has no threads of its parent: it gets its own pool."""
        if self._pool is None or self._pool_pid != os.getpid():
            self._pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="tdbg-stats")
            self._pool_pid = os.getpid()
        return self._pool.submit(call, SWEEP)


def _cut(elements: int, threads: int, least: int) -> int:
    """Most elements of a piece, so that each of several threads has a few; one is spared the cutting."""
    if threads == 1:
        return min(elements + 1, _PIECE_LIMIT)
    share = -(-elements // (threads * _SHARES) // _ALIGN) * _ALIGN
    return min(max(share, least), _PIECE_LIMIT)


def _marker() -> Path | None:
    """The file that says that the cache has the kernels of this Python and processor; None without one."""
    import numba
    from llvmlite.binding import get_host_cpu_name

    from tdbg_lab.stats.jit import cache_path
    from tdbg_lab.stats.sweep import STAMP, call

    folder = cache_path(call)
    by = f"{sys.implementation.cache_tag}-numba-{numba.__version__}-{get_host_cpu_name()}"
    return folder / f"tdbg-{STAMP:08x}-{by}.compiled" if folder else None


@contextmanager
def _turn() -> Iterator[None]:
    """Wait until no other process compiles for the same cache; at once where files cannot be locked."""
    with ExitStack() as held:
        with suppress(Exception):  # no cache, no numba, a folder that cannot be written, another system
            import fcntl

            if (marker := _marker()) is not None:
                file = held.enter_context(marker.with_suffix(".lock").open("a"))
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _load() -> Any:
    from tdbg_lab.stats.sweep import entry

    return entry()


def _measure_again(call: Call, target: GrowingBlock, first: int) -> None:
    """Redo the moments of rows whose magnitudes are too extreme for sums of squares (float64 only)."""
    for row in np.flatnonzero(target.floats[3, first : len(target)] == -1.0).tolist():
        address, _, n, _, _ = call.memory(row)
        values = np.ctypeslib.as_array((ctypes.c_double * n).from_address(address))
        block = reference.summarize_one(values)
        target.floats[:, first + row] = [
            getattr(block, name)[0] for name in ("min", "max", "mean", "std", "l1", "l2")
        ]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
