"""The buffers that the kernels work in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.stats.dtypes import float8_tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Workspace"]


class Workspace:
    """Buffers of one call at a time, reused from call to call. Pages never touched cost nothing."""

    def __init__(self) -> None:
        from tdbg_lab.stats.sweep import COUNTS, MOMENTS, SCRATCH

        self._scratch_size = SCRATCH
        self._widths = (8, COUNTS, MOMENTS)  # of pieces, counts, moments
        self._fixed: list[NDArray[Any]] = [np.zeros(2048, np.int64), float8_tables()]
        self._scratch: list[NDArray[np.uint32]] = []
        self._pieces = self._channels = self._bins = self._threads = 0
        self._buffers: list[NDArray[Any]] = []
        self._addresses = np.zeros(0, np.int64)
        self.address = 0
        """Of the addresses of the buffers, as `tdbg_lab.stats.sweep.SPACE` names them."""

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
        while len(self._scratch) < self._threads:
            self._scratch.append(np.zeros(self._scratch_size, np.uint32))
        self._buffers = [
            *[np.empty(self._pieces * width, np.int64) for width in self._widths],
            np.empty(self._bins, np.uint16),
            np.empty(self._bins, np.int64),
            *[np.empty(self._channels, np.int64) for _ in range(3)],
            *self._fixed,
            *self._scratch,
        ]
        self._addresses = np.array([buffer.ctypes.data for buffer in self._buffers], np.int64)
        self.address = self._addresses.ctypes.data
