"""One call of the kernels: a table of numbers, and what keeps alive what they point to.

Shared by the kernels, which need numba, and by those who call them, who do not.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["CALL", "JOIN", "MEASURE", "PLAN", "SWEEP", "Call"]

PLAN, SWEEP, JOIN, MEASURE = 0, 1, 2, 3
"""What to do: cut tensors into pieces; measure pieces, in as many threads as call it; join the pieces
into rows; all of it in the calling thread, tensors uncut."""
CALL = (
    *("what", "memory", "rows", "cut", "space", "columns", "channels", "n_channels"),
    *("extreme", "pieces", "next", "thread"),
)
"""Arguments and results of a call, int64 each.

``memory``, ``space``: addresses of the table of `rows` tensors and of the addresses of the buffers.
``cut``: most elements of a piece. ``columns``: address of ``(13 * rows + 2,)`` 64-bit numbers that receive
the counts ``(5, rows) int64``, min, max, mean, std, l1, l2 ``(6, rows) float64``, and the offsets of
histograms and of channels, ``rows + 1`` each. ``channels``: address of ``(2 * n_channels,) float32`` that
receives shares of zeros, then means. ``extreme``: result, rows too extreme for float64 squares.
``pieces``: result of ``PLAN``, taken by ``SWEEP`` and ``JOIN``. ``next``, ``thread``: counters of ``SWEEP``,
0 before."""
_WHAT, _CUT, _SPACE = CALL.index("what"), CALL.index("cut"), CALL.index("space")
_EXTREME = CALL.index("extreme")


class Call:
    """One call of the kernels.

    Parameters
    ----------
    entry
        The native function, with its ``address`` and its ``ctypes`` form.
    memories
        (address, code, elements, channels, inner) of each tensor; alive as long as the call is used.
    """

    def __init__(self, entry: Any, memories: Iterable[int]) -> None:
        self._entry = entry.ctypes
        self.function: int = entry.address
        self._table = table = array("q", memories)
        self.rows = len(table) // 5
        self.elements = sum(table[2::5])
        self.n_channels = sum(table[3::5])
        self.columns: NDArray[np.int64] = np.empty(13 * self.rows + 2, np.int64)
        self.channels: NDArray[np.float32] = np.empty(2 * self.n_channels, np.float32)
        out, wide = self.columns.ctypes.data, self.channels.ctypes.data if self.n_channels else 0
        memory = table.buffer_info()[0]
        self._arguments = array("q", (0, memory, self.rows, 0, 0, out, wide, self.n_channels, 0, 0, 0, 0))
        self.address: int = self._arguments.buffer_info()[0]

    def __call__(self, what: int) -> None:
        """Do `what`; ``SWEEP`` may be called by several threads at once."""
        self._arguments[_WHAT] = what
        self._entry(self.address)

    def prepare(self, what: int) -> None:
        """Let `function`, called with `address`, do `what`."""
        self._arguments[_WHAT] = what

    def use(self, space: int, cut: int) -> None:
        """Use the buffers whose addresses stand at the address `space`, and pieces of `cut` elements."""
        self._arguments[_SPACE], self._arguments[_CUT] = space, cut

    def most_pieces(self, cut: int) -> tuple[int, int]:
        """Pieces, and channels of pieces, that there are at most when tensors are cut at `cut`."""
        table = self._table
        channels = sum(c * (1 + n // cut) for n, c in zip(table[2::5], table[3::5], strict=True))
        return self.rows + self.elements // cut, channels

    @property
    def memories(self) -> NDArray[np.int64]:
        """The table of tensors, ``(rows, 5) int64``."""
        return np.frombuffer(self._table, np.int64).reshape(-1, 5)

    @property
    def extreme(self) -> int:
        """Rows whose magnitudes are too extreme for sums of squares."""
        return self._arguments[_EXTREME]
