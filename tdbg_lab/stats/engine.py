"""What runs the numba kernels: their readiness, threads and buffers. One engine a process."""

from __future__ import annotations

import ctypes
import logging
import os
import threading
from array import array
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import StatsBlock
from tdbg_lab.stats import reference
from tdbg_lab.stats.block import columns, empty_block
from tdbg_lab.stats.dtypes import Code, float8_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tdbg_lab.stats.pointers import Memory

__all__ = ["CpuEngine", "engine"]

log = logging.getLogger(__name__)

_PARALLEL_FROM = 1 << 18
"""Elements per thread that are worth waking it: about 0.2 ms of work."""
_PIECE_LIMIT = 1 << 30
"""Elements per piece: the 32-bit counters of a histogram must not overflow."""
_ALIGN = 2048
"""Pieces begin at multiples of it within a tensor, so that they are cut into the same blocks."""
_MOST_BINS = 2040
_MOST_THREADS = 8


@cache
def engine() -> CpuEngine:
    """The engine of this process."""
    return CpuEngine()


class _Workspace:
    """Buffers of one calling thread, reused from call to call. Pages never touched cost nothing."""

    def __init__(self) -> None:
        from tdbg_lab.stats.kernels import BLOCK, LANES
        from tdbg_lab.stats.sweep import COUNTS, MOMENTS

        self._widths = (COUNTS, MOMENTS)
        self._scratch_size = 3 * BLOCK + 2048 * LANES
        self.dense = np.zeros(2048, np.int64)
        self.scratch: list[NDArray[np.uint32]] = []
        self.counts = np.zeros((0, COUNTS), np.int64)
        self.moments = np.zeros((0, MOMENTS))
        self.bins = np.zeros(0, np.uint16)
        self.found = np.zeros(0, np.int64)

    def reserve(self, pieces: int, bins: int, threads: int) -> None:
        """Make room for so many pieces, histogram entries and threads."""
        if pieces > len(self.counts):
            self.counts = np.empty((2 * pieces, self._widths[0]), np.int64)
            self.moments = np.empty((2 * pieces, self._widths[1]))
        if bins > len(self.bins):
            self.bins, self.found = np.empty(2 * bins, np.uint16), np.empty(2 * bins, np.int64)
        while len(self.scratch) < threads:
            self.scratch.append(np.zeros(self._scratch_size, np.uint32))


class CpuEngine:
    """The compiled kernels, their threads and buffers. Safe to call from any thread."""

    def __init__(self) -> None:
        self.ready = False
        """The kernels can be called without delay."""
        self._broken = False
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
        """Compile or load the kernels; never raises."""
        with self._warming:
            if not self.ready and not self._broken:
                self._warm_up()

    def _warm_up(self) -> None:
        try:
            from tdbg_lab.stats import sweep  # noqa: F401 - compiles nothing yet, but imports numba

            sample = np.linspace(-1.0, 1.0, 64, dtype=np.float32)
            memory = (sample.ctypes.data, int(Code.FLOAT32), len(sample), 4, 16)
            self._measure([memory], threads=1)
            self._measure([memory, memory], threads=2)
        except Exception:
            self._broken = True
            log.warning("The numba kernels cannot be used; statistics fall back to numpy.", exc_info=True)
        else:
            self.ready = True

    def measure(
        self, memories: Sequence[Memory | tuple[int, int, int, int, int]], *, threads: int | None = None
    ) -> StatsBlock:
        """Statistics of blocks of memory, one row each. Call it when `usable`.

        Parameters
        ----------
        memories : sequence of Memory, or of equal tuples
            Alive until the call returns.
        threads : int, optional
            At most so many threads, the caller among them; by default one a core, up to 8.
        """
        total = sum([memory[2] for memory in memories])
        wanted = self._threads if threads is None else threads
        wanted = min(wanted, total // _PARALLEL_FROM) if total >= 2 * _PARALLEL_FROM else 1
        return self._measure(memories, threads=max(wanted, 1))

    def _measure(self, memories: Sequence[tuple[int, int, int, int, int]], *, threads: int) -> StatsBlock:
        from tdbg_lab.stats.sweep import measure

        n_rows = len(memories)
        if not n_rows:
            return empty_block()
        pieces, channels, bins = _table(memories, threads)
        space = self._workspace(len(pieces), bins, threads)
        ints, floats = np.empty((5, n_rows), np.int64), np.empty((6, n_rows))
        offsets = np.empty(n_rows + 1, np.int64)
        sums = np.zeros(channels)
        zeros, bad = np.zeros((2, channels), np.int64)
        outputs = (space.bins, space.found, sums, zeros, bad)
        tables = float8_tables()
        if threads == 1 and len(pieces) == n_rows:
            extreme = measure(
                pieces, tables, space.scratch[0], space.counts, space.moments, *outputs,
                space.dense, ints, floats, offsets,
            )  # fmt: skip
        else:
            extreme = self._measure_in_threads(pieces, threads, space, outputs, (ints, floats, offsets))
        if extreme:
            _measure_again(memories, floats)
        fill = offsets[-1]
        channel_offsets, zero_frac, mean = _channels(pieces, ints[0], sums, zeros, bad)
        return StatsBlock(
            **columns(ints, floats),
            hist_offsets=offsets,
            hist_bins=space.bins[:fill].copy(),
            hist_counts=space.found[:fill].copy(),
            channel_offsets=channel_offsets,
            channel_zero_frac=zero_frac,
            channel_mean=mean,
        )

    def _measure_in_threads(
        self,
        pieces: NDArray[np.int64],
        threads: int,
        space: _Workspace,
        outputs: tuple[NDArray[Any], ...],
        targets: tuple[NDArray[Any], ...],
    ) -> int:
        """Share the pieces among threads in runs of about equal length, then join them."""
        from tdbg_lab.stats.sweep import join, sweep

        bins, found, *channels = outputs
        lengths = pieces[:, 3] - pieces[:, 2]
        room = np.concatenate([[0], np.cumsum(np.minimum(lengths, _MOST_BINS))])
        middle = np.cumsum(lengths) - lengths / 2
        share = max(float(lengths.sum()) / threads, 1.0)
        bounds = np.searchsorted(middle, share * np.arange(threads + 1)).tolist()
        bounds[0], bounds[-1] = 0, len(pieces)

        def run(k: int) -> None:
            sweep(
                pieces, bounds[k], bounds[k + 1], float8_tables(), space.scratch[k], space.counts,
                space.moments, bins, found, room[bounds[k]], *channels,
            )  # fmt: skip

        others = [self._submit(run, k) for k in range(1, threads)]
        try:
            run(0)
        finally:
            for other in others:
                other.result()
        extreme: int = join(pieces, space.counts, space.moments, bins, found, space.dense, *targets)
        return extreme

    def _submit(self, run: Any, k: int) -> Any:
        """Start `run(k)` in the pool. A forked child has no threads of its parent: it gets its own pool."""
        if self._pool is None or self._pool_pid != os.getpid():
            self._pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="tdbg-stats")
            self._pool_pid = os.getpid()
        return self._pool.submit(run, k)

    def _workspace(self, pieces: int, bins: int, threads: int) -> _Workspace:
        space: _Workspace | None = getattr(self._local, "space", None)
        if space is None:
            space = self._local.space = _Workspace()
        space.reserve(pieces, bins, threads)
        return space


def _table(
    memories: Sequence[tuple[int, int, int, int, int]], threads: int
) -> tuple[NDArray[np.int64], int, int]:
    """(pieces, as in `tdbg_lab.stats.sweep.PIECE`; channels and histogram bins to make room for)."""
    flat = array("q")
    total = 0
    longest = _PIECE_LIMIT
    if threads > 1:
        total = sum(memory[2] for memory in memories)
        longest = min(longest, max(-(-total // threads), 1))
        longest = -(-longest // _ALIGN) * _ALIGN
    channel = bins = 0
    for row, (address, code, n, channels, inner) in enumerate(memories):
        start = 0
        while True:
            stop = n if n - start <= longest else start + longest
            flat.extend((address, code, start, stop, channels, inner, channel, row))
            channel += channels
            bins += min(stop - start, _MOST_BINS)
            start = stop
            if start >= n:
                break
    return np.frombuffer(flat, np.int64).reshape(-1, 8), channel, bins


def _channels(
    pieces: NDArray[np.int64],
    count: NDArray[np.int64],
    sums: NDArray[np.float64],
    zeros: NDArray[np.int64],
    bad: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """(offsets, share of zeros, mean of the finite elements) of the channels of each row."""
    n_rows = len(count)
    offsets = np.zeros(n_rows + 1, np.int64)
    if not len(sums):
        return offsets, np.zeros(0, np.float32), np.zeros(0, np.float32)
    width = np.zeros(n_rows, np.int64)
    width[pieces[:, 7]] = pieces[:, 4]
    np.cumsum(width, out=offsets[1:])
    if len(pieces) > n_rows:
        n = pieces[:, 4]
        target = np.repeat(offsets[pieces[:, 7]] - pieces[:, 6], n) + np.arange(len(sums))
        size = int(offsets[-1])
        parts: list[NDArray[Any]] = [np.bincount(target, part, size) for part in (sums, zeros, bad)]
    else:
        parts = [sums, zeros.astype(np.float64), bad.astype(np.float64)]
    each = np.repeat(count // np.maximum(width, 1), width)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = (parts[0] / (each - parts[2])).astype(np.float32)
        return offsets, (parts[1] / each).astype(np.float32), mean


def _measure_again(memories: Sequence[tuple[int, int, int, int, int]], floats: NDArray[np.float64]) -> None:
    """Redo the moments of rows whose magnitudes are too extreme for sums of squares (float64 only)."""
    for row in np.flatnonzero(floats[3] == -1.0).tolist():
        address, _, n, _, _ = memories[row]
        values = np.ctypeslib.as_array((ctypes.c_double * n).from_address(address))
        block = reference.summarize_one(values)
        for k, name in enumerate(("min", "max", "mean", "std", "l1", "l2")):
            floats[k, row] = getattr(block, name)[0]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
