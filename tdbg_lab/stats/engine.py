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

from tdbg_lab.records import StatsBlock
from tdbg_lab.stats import reference
from tdbg_lab.stats.block import empty_block
from tdbg_lab.stats.dtypes import Code, float8_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tdbg_lab.stats.pointers import Memory
    from tdbg_lab.stats.team import Team

__all__ = ["CpuEngine", "engine"]

log = logging.getLogger(__name__)

_PARALLEL_FROM = 1 << 18
"""Elements per thread that are worth waking it: about 0.2 ms of work."""
_SHARE_FROM = 1 << 14
"""Elements per thread that are worth sharing with threads that are awake."""
_RUNS = 4
"""Runs of pieces per thread: a thread that is late leaves its runs to the others."""
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
_PLAN, _SWEEP, _JOIN, _MEASURE = range(4)  # as in `tdbg_lab.stats.sweep`, which imports numba
_EXTREME, _PIECES, _BOUNDS, _RUN_COUNT = 8, 9, 10, 11  # in its `CALL`
_CALL_LENGTH = 14
_CHILD = """
import os
getattr(os, "nice", int)(10)
from tdbg_lab.stats.engine import engine
engine().compile()
"""
_CHILD_TIMEOUT_S = 600
_NO_CHANNELS = np.zeros(0, np.float32)


@cache
def engine() -> CpuEngine:
    """The engine of this process."""
    return CpuEngine()


class _Workspace:
    """Buffers of one calling thread, reused from call to call. Pages never touched cost nothing."""

    def __init__(self) -> None:
        from tdbg_lab.stats.sweep import COUNTS, MOMENTS, SCRATCH

        self._scratch_size = SCRATCH
        self._widths = (8, COUNTS, MOMENTS)  # of pieces, counts, moments
        self._fixed: list[NDArray[Any]] = [np.zeros(2048, np.int64), float8_tables()]
        self._scratch: list[NDArray[np.uint32]] = []
        self._pieces = self._channels = self._bins = self._threads = 0
        self._buffers: list[NDArray[Any]] = []
        self.bins = np.zeros(0, np.uint16)
        self.found = np.zeros(0, np.int64)
        self.addresses = np.zeros(0, np.int64)
        """Of the buffers, as `tdbg_lab.stats.sweep.SPACE` names them."""

    def pieces(self, n: int) -> NDArray[np.int64]:
        """The table of pieces, ``(n, 8) int64``."""
        return self._buffers[0][: n * 8].reshape(n, 8)

    def reserve(self, pieces: int, bins: int, channels: int, threads: int) -> None:
        """Make room for so many pieces, histogram entries, channels and threads."""
        if (
            pieces <= self._pieces
            and bins <= self._bins
            and channels <= self._channels
            and threads <= self._threads
        ):
            return
        self._pieces, self._bins = max(2 * pieces, self._pieces), max(2 * bins, self._bins)
        self._channels, self._threads = max(2 * channels, self._channels), max(threads, self._threads)
        self.bins, self.found = np.empty(self._bins, np.uint16), np.empty(self._bins, np.int64)
        while len(self._scratch) < self._threads:
            self._scratch.append(np.zeros(self._scratch_size, np.uint32))
        self._buffers = [
            *[np.empty(self._pieces * width, np.int64) for width in self._widths],
            self.bins,
            self.found,
            *[np.empty(self._channels, np.int64) for _ in range(3)],
            *self._fixed,
            *self._scratch,
        ]
        self.addresses = np.array([buffer.ctypes.data for buffer in self._buffers], np.int64)


class _Call:
    """One call of the kernels: the table of its arguments, and what keeps them alive."""

    def __init__(
        self, entry: Any, table: array[int], columns: NDArray[np.int64], channels: NDArray[np.float32]
    ) -> None:
        self._entry = entry.ctypes
        self.function: int = entry.address
        self._alive: Any = (table, columns, channels)
        memory, out, wide = table.buffer_info()[0], columns.ctypes.data, channels.ctypes.data
        self._arguments = array("q", (0, memory, len(table) // 5, 0, 0, out, wide, len(channels) // 2))
        self._arguments.extend((0,) * (_CALL_LENGTH - len(self._arguments)))
        self.address: int = self._arguments.buffer_info()[0]

    def __call__(self, what: int) -> None:
        """Do `what`; ``SWEEP`` may be called by several threads at once."""
        self._arguments[0] = what
        self._entry(self.address)

    def use(self, space: _Workspace, cut: int) -> None:
        """Use these buffers, and pieces of at most `cut` elements."""
        self._arguments[3], self._arguments[4] = cut, space.addresses.ctypes.data

    def share(self, bounds: NDArray[np.int64]) -> None:
        """Sweep next, in runs with these bounds."""
        self._alive += (bounds,)
        self._arguments[0] = _SWEEP
        self._arguments[_BOUNDS], self._arguments[_RUN_COUNT] = bounds.ctypes.data, len(bounds) - 1

    @property
    def pieces(self) -> int:
        """Pieces planned."""
        return self._arguments[_PIECES]

    @property
    def extreme(self) -> int:
        """Rows whose magnitudes are too extreme for sums of squares."""
        return self._arguments[_EXTREME]


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
            memory = (sample.ctypes.data, int(Code.FLOAT32), len(sample), 4, 16)
            self._measure(array("q", memory), len(sample), 1)
            self._call = _load()
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
        table = array("q", chain.from_iterable(memories))
        total = sum(table[2::5])
        wanted = self._threads if threads is None else min(threads, _MOST_THREADS)
        worth = _PARALLEL_FROM if team is None else _SHARE_FROM
        wanted = min(wanted, total // worth) if total >= 2 * worth else 1
        return self._measure(table, total, max(wanted, 1), team)

    def _measure(self, table: array[int], total: int, threads: int, team: Team | None = None) -> StatsBlock:
        n_rows = len(table) // 5
        if not n_rows:
            return empty_block()
        n_channels = sum(table[3::5])
        columns = np.empty(13 * n_rows + 2, np.int64)
        floats = columns[5 * n_rows : 11 * n_rows].view(np.float64)
        channels = np.empty(2 * n_channels, np.float32) if n_channels else _NO_CHANNELS
        call = _Call(self._call or _load(), table, columns, channels)
        if threads == 1 and total <= _PIECE_LIMIT:
            space = self._workspace(n_rows, min(total, n_rows * _MOST_BINS), n_channels, 1)
            call.use(space, total + 1)
            call(_MEASURE)
        else:
            space = self._measure_in_threads(call, table, total, threads, team)
        if call.extreme:
            _measure_again(table, floats.reshape(6, n_rows))
        return _block(n_rows, columns, floats, channels, space)

    def _measure_in_threads(
        self, call: _Call, table: array[int], total: int, threads: int, team: Team | None
    ) -> _Workspace:
        """Cut the tensors into pieces, share them among threads in runs of about equal length, join them.

        Every thread takes the next run when it is done with one. Of our own threads the caller waits
        for none that has not begun: the other cores may be taken.
        """
        cut = -(-total // (threads * _RUNS) // _ALIGN) * _ALIGN
        cut = min(max(cut, _LEAST_PIECE if team is None else _LEAST_SHARE), _PIECE_LIMIT)
        most = len(table) // 5 + total // cut
        widest = sum(c * (1 + n // cut) for n, c in zip(table[2::5], table[3::5], strict=True))
        space = self._workspace(most, most * _MOST_BINS, widest, threads)
        call.use(space, cut)
        call(_PLAN)
        call.share(_shares(space.pieces(call.pieces), threads * _RUNS))
        if team is not None and team.usable:
            team.run(call.function, call.address, threads)
        else:
            others = [self._submit(call) for _ in range(1, threads)]
            try:
                call(_SWEEP)
            finally:
                for other in others:
                    if not other.cancel():
                        other.result()
        call(_JOIN)
        return space

    def _submit(self, call: _Call) -> Any:
        """Sweep in the pool, too. A forked child has no threads of its parent: it gets its own pool."""
        if self._pool is None or self._pool_pid != os.getpid():
            self._pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="tdbg-stats")
            self._pool_pid = os.getpid()
        return self._pool.submit(call, _SWEEP)

    def _workspace(self, pieces: int, bins: int, channels: int, threads: int) -> _Workspace:
        space: _Workspace | None = getattr(self._local, "space", None)
        if space is None:
            space = self._local.space = _Workspace()
        space.reserve(pieces, bins, channels, threads)
        return space


def _marker() -> Path | None:
    """The file that says that the cache has these kernels for this processor; None without a cache."""
    from llvmlite.binding import get_host_cpu_name  # type: ignore[import-untyped]

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


def _shares(pieces: NDArray[np.int64], runs: int) -> NDArray[np.int64]:
    """Bounds of runs of pieces of about equal length: ``(runs + 1,)`` indices."""
    lengths = pieces[:, 3] - pieces[:, 2]
    middle = np.cumsum(lengths) - lengths / 2
    share = max(float(lengths.sum()) / runs, 1.0)
    bounds = np.searchsorted(middle, share * np.arange(runs + 1)).astype(np.int64)
    bounds[0], bounds[-1] = 0, len(pieces)
    return bounds


def _block(
    n: int,
    columns: NDArray[np.int64],
    floats: NDArray[np.float64],
    channels: NDArray[np.float32],
    space: _Workspace,
) -> StatsBlock:
    """The block that `run` has left in its outputs. The columns are views of one array."""
    offsets = columns[11 * n : 12 * n + 1]
    fill = offsets[n]
    half = len(channels) // 2
    return StatsBlock(
        columns[:n],
        columns[n : 2 * n],
        columns[2 * n : 3 * n],
        columns[3 * n : 4 * n],
        columns[4 * n : 5 * n],
        floats[:n],
        floats[n : 2 * n],
        floats[2 * n : 3 * n],
        floats[3 * n : 4 * n],
        floats[4 * n : 5 * n],
        floats[5 * n :],
        offsets,
        space.bins[:fill].copy(),
        space.found[:fill].copy(),
        columns[12 * n + 1 :],
        channels[:half],
        channels[half:],
    )


def _measure_again(table: array[int], floats: NDArray[np.float64]) -> None:
    """Redo the moments of rows whose magnitudes are too extreme for sums of squares (float64 only)."""
    for row in np.flatnonzero(floats[3] == -1.0).tolist():
        address, n = table[5 * row], table[5 * row + 2]
        values = np.ctypeslib.as_array((ctypes.c_double * n).from_address(address))
        block = reference.summarize_one(values)
        for k, name in enumerate(("min", "max", "mean", "std", "l1", "l2")):
            floats[k, row] = getattr(block, name)[0]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
