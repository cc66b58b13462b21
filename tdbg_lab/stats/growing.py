"""Rows of statistics that are added call by call, and taken as one block at the end of a step."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import StatsBlock
from tdbg_lab.stats.call import TARGET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.stats.workspace import Workspace

__all__ = ["GrowingBlock"]

_ROOMS = slice(TARGET.index("row_room"), TARGET.index("channel_room") + 1)
_ROWS, _FILL, _CHANNELS = TARGET.index("rows"), TARGET.index("fill"), TARGET.index("n_channels")
_LEAST_ROOM = 64


class GrowingBlock:
    """Columns with room to spare, which the kernels write straight into.

    So a step of hundreds of small measurements makes as many arrays as one. Not safe to be written to by
    several threads at once.

    Attributes
    ----------
    counts : (5, room) int64
        Elements, NaN, +inf, -inf, zeros of each row; only the first ``len(self)`` columns mean anything.
    floats : (6, room) float64
        Min, max, mean, std, l1, l2.
    space
        Buffers of the kernels that write into it, once some have.
    """

    def __init__(self) -> None:
        self._header = array("q", [0] * len(TARGET))
        self.address: int = self._header.buffer_info()[0]
        """Of the header, as `tdbg_lab.stats.call.TARGET` names its numbers."""
        self.generation = 0
        """Times that it was cleared."""
        self.space: Workspace | None = None
        self.counts: NDArray[np.int64] = np.empty((5, 0), np.int64)
        self.floats: NDArray[np.float64] = np.empty((6, 0), np.float64)
        self._offsets: NDArray[np.int64] = np.zeros((2, 1), np.int64)
        self._bins: NDArray[np.uint16] = np.empty(0, np.uint16)
        self._found: NDArray[np.int64] = np.empty(0, np.int64)
        self._channels: NDArray[np.float32] = np.empty((2, 0), np.float32)

    def __len__(self) -> int:
        return self._header[_ROWS]

    def reserve(self, rows: int, bins: int, channels: int) -> None:
        """Make room for so many more rows, entries of histograms, and channels."""
        header = self._header
        rows, bins, channels = rows + header[_ROWS], bins + header[_FILL], channels + header[_CHANNELS]
        row_room, bin_room, channel_room = header[_ROOMS]
        if rows <= row_room and bins <= bin_room and channels <= channel_room:
            return
        if rows > row_room:
            row_room = 2 * rows + _LEAST_ROOM
            self.counts, self.floats = _wider(self.counts, row_room), _wider(self.floats, row_room)
            self._offsets = _wider(self._offsets, row_room + 1)
        if bins > bin_room:
            bin_room = 2 * bins
            self._bins, self._found = _wider(self._bins, bin_room), _wider(self._found, bin_room)
        if channels > channel_room:
            channel_room = 2 * channels
            self._channels = _wider(self._channels, channel_room)
        arrays = self.counts, self.floats, self._offsets, self._bins, self._found, self._channels
        for at, one in enumerate((*(one.ctypes.data for one in arrays), row_room, bin_room, channel_room)):
            header[at] = one

    def repeat(self, row: int) -> None:
        """Add a row once more, without its channels."""
        first, last = self._offsets[0, row : row + 2].tolist()
        width = last - first
        self.reserve(1, width, 0)
        n, fill = len(self), self._header[_FILL]
        for column in (self.counts, self.floats):
            column[:, n] = column[:, row]
        for entries in (self._bins, self._found):
            entries[fill : fill + width] = entries[first:last]
        self._offsets[:, n + 1] = fill + width, self._header[_CHANNELS]
        self._header[_ROWS], self._header[_FILL] = n + 1, fill + width

    def block(self) -> StatsBlock:
        """A copy of the rows."""
        n, header = len(self), self._header
        fill, channels = header[_FILL], header[_CHANNELS]
        offsets = self._offsets[:, : n + 1].copy()
        shares = self._channels[:, :channels].copy()
        count, nan, above, below, zero = self.counts[:, :n].copy()
        low, high, mean, std, l1, l2 = self.floats[:, :n].copy()
        return StatsBlock(
            *(count, nan, above, below, zero, low, high, mean, std, l1, l2),
            offsets[0],
            self._bins[:fill].copy(),
            self._found[:fill].copy(),
            offsets[1],
            shares[0],
            shares[1],
        )

    def clear(self) -> None:
        """Forget the rows; the room stays."""
        header = self._header
        header[_ROWS] = header[_FILL] = header[_CHANNELS] = 0
        self.generation += 1


def _wider(held: NDArray[Any], room: int) -> NDArray[Any]:
    """A copy with room for so many in its last dimension. Pages never touched cost nothing."""
    new = np.empty((*held.shape[:-1], room), held.dtype)
    new[..., : held.shape[-1]] = held
    return new
