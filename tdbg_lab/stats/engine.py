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
from tdbg_lab.stats.call import JOIN, MEASURE, NUMBERS, PLAN, SWEEP, Call
from tdbg_lab.stats.dtypes import Code
from tdbg_lab.stats.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tdbg_lab.records import StatsBlock
    from tdbg_lab.stats.growing import GrowingBlock
    from tdbg_lab.stats.pointers import Memory
    from tdbg_lab.stats.team import Team

__all__ = ["CpuEngine", "engine"]

log = logging.getLogger(__name__)

_PARALLEL_FROM = 1 << 18
"""Elements per thread that are worth waking it: about 0.2 ms of work."""
_SHARE_FROM = 1 << 14
"""Elements per thread that are worth sharing with threads that are awake."""
_SHARES = 4
"""Pieces per thread of what is cut: a thread that is late leaves its share to the others."""
_LEAST_PIECE = 1 << 16
"""Elements below which a tensor is not cut."""
_LEAST_SHARE = 1 << 13
"""The same, among threads that are awake."""
_PIECE_LIMIT = 1 << 30
"""Elements per piece: the 32-bit counters of a histogram must not overflow."""
_ALIGN = 2048
"""Pieces begin at multiples of it within a tensor, so that they are cut into the same blocks."""
_MOST_BINS = 2040
_MOST_THREADS = 8
_CHILD = """
import os
getattr(os, "nice", int)(10)
from tdbg_lab.stats.engine import engine
engine().compile()
"""
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
        rows = self._space().rows
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
        call = Call(self._call or _load(), chain.from_iterable(memories), target.address)
        first = len(target)
        target.reserve(call.rows, min(call.elements, call.rows * _MOST_BINS), call.n_channels)
        most = self._threads if threads is None else min(threads, _MOST_THREADS)
        worth = _PARALLEL_FROM if team is None else _SHARE_FROM
        wanted = min(most, call.elements // worth)
        if wanted < 2 and call.elements <= _PIECE_LIMIT:
            space = self._space()
            space.reserve(call.rows, min(call.elements, call.rows * _MOST_BINS), call.n_channels, 1)
            call.use(space.address, call.elements + 1)
            call(MEASURE)
        else:
            self._measure_in_threads(call, max(wanted, 1), team)
        if call.extreme:
            _measure_again(call, target, first)

    def add_numbers(self, target: GrowingBlock, values: Sequence[float]) -> None:
        """Add rows of one number each to `target`. Call it when `usable`."""
        numbers = array("d", values)
        target.reserve(len(numbers), len(numbers), 0)
        self.call_with(NUMBERS, numbers.buffer_info()[0], len(numbers), target=target.address)

    def call_with(self, what: int, memory: int, rows: int, *, space: int = 0, target: int = 0) -> None:
        """Let the kernels do `what` with these arguments, see `tdbg_lab.stats.call.CALL`."""
        arguments = array("q", (what, memory, rows, 0, space, target, 0, 0, 0, 0))
        (self._call or _load()).ctypes(arguments.buffer_info()[0])

    def _measure_in_threads(self, call: Call, threads: int, team: Team | None) -> None:
        """Cut large tensors into pieces, let threads take one after the other, join them.

        Of our own threads the caller waits for none that has not begun: the other cores may be taken.
        """
        cut = -(-call.elements // (threads * _SHARES) // _ALIGN) * _ALIGN
        cut = min(max(cut, _LEAST_PIECE if team is None else _LEAST_SHARE), _PIECE_LIMIT)
        pieces, channels = call.most_pieces(cut)
        space = self._space()
        space.reserve(pieces, pieces * _MOST_BINS, channels, threads)
        call.use(space.address, cut)
        call(PLAN)
        if team is not None and team.usable:
            call.prepare(SWEEP)
            team.run(call.function, call.address, threads)
        else:
            others = [self._submit(call) for _ in range(1, threads)]
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

    def _space(self) -> Workspace:
        """The buffers of the calling thread."""
        space: Workspace | None = getattr(self._local, "space", None)
        if space is None:
            space = self._local.space = Workspace()
        return space


def _marker() -> Path | None:
    """The file that says that the cache has these kernels for this processor; None without a cache."""
    from llvmlite.binding import get_host_cpu_name

    from tdbg_lab.stats.jit import cache_path
    from tdbg_lab.stats.sweep import STAMP, call

    folder = cache_path(call)
    return folder / f"tdbg-{STAMP:08x}-{get_host_cpu_name()}.compiled" if folder else None


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
