"""One call of the kernels: a table of numbers, and what keeps alive what they point to.

Shared by the kernels, which need numba, and by those who call them, who do not.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "APART",
    "CALL",
    "CLASS_COLUMNS",
    "COMPARE",
    "COPY",
    "JOIN",
    "MEASURE",
    "MOST_BINS",
    "NUMBERS",
    "PLAN",
    "SCORE",
    "SWEEP",
    "TARGET",
    "Call",
]

PLAN, SWEEP, JOIN, MEASURE, NUMBERS, COPY, COMPARE, SCORE = range(8)
"""What to do: cut tensors into pieces; measure pieces, in as many threads as call it; join the pieces
into rows; all of it, in the calling thread or in those of a team. Rows of one number each; copies of samples
of tensors, and how far they have moved since; facts about predictions and labels."""
CALL = (
    *("what", "memory", "rows", "cut", "space", "target", "extreme", "pieces", "next", "thread"),
    *("team", "function", "threads"),
)
"""Arguments and results of a call, int64 each.

``memory``, ``space``, ``target``: addresses of the table of `rows` tensors, of the addresses of the
buffers, and of the header of the rows that the new ones are added to. ``cut``: most elements of a piece.
``extreme``: result, rows too extreme for float64 squares. ``pieces``: result of ``PLAN``, taken by ``SWEEP``
and ``JOIN``. ``next``, ``thread``: counters of ``SWEEP``. ``team``: for ``MEASURE``, the address of
what lets `threads` OpenMP threads sweep by calling ``function``, the kernels themselves; 0 for one thread.

``NUMBERS``: ``memory`` is the address of `rows` float64. ``COPY``, ``COMPARE``: `tdbg_lab.stats.moves`.
``SCORE``: `tdbg_lab.stats.scoring`."""
TARGET = (
    *("counts", "floats", "offsets", "bins", "found", "channels"),
    *("row_room", "bin_room", "channel_room", "rows", "fill", "n_channels"),
)
"""Header of `tdbg_lab.stats.growing.GrowingBlock`, int64 each.

Addresses of ``(5, row_room) int64``, ``(6, row_room) float64``, offsets of histograms and of channels
``(2, row_room + 1) int64``, ``(bin_room,) uint16``, ``(bin_room,) int64``, and shares of zeros and means
``(2, channel_room) float32``. Kernels add to ``rows``, ``fill`` and ``n_channels``, what is there already."""
MOST_BINS = 2040
"""Entries of the histogram of a tensor, at most."""
CLASS_COLUMNS = 5
"""Numbers that ``SCORE`` keeps for each class."""
APART = 16
"""Unused entries between the channels of two pieces, two cache lines: threads that measure them side by
side would take a line that both write to from each other, at each row of a tensor."""
_WHAT, _CUT, _SPACE = CALL.index("what"), CALL.index("cut"), CALL.index("space")
_EXTREME, _TEAM = CALL.index("extreme"), CALL.index("team")


class Call:
    """One call of the kernels. It may be made again, of a tensor that has moved and is as large as before.

    Parameters
    ----------
    entry
        The native function, with its ``address`` and its ``ctypes`` form.
    memories
        (address, code, elements, channels, inner) of each tensor; alive as long as the call is used.
    target
        Address of a header, with room for the rows.

    Attributes
    ----------
    rows, elements, bins, channels
        Tensors, elements of all of them, and the entries of histograms and the channels they have at most.
    threads, pieces, piece_bins, piece_channels
        By how many it is made, and the same of the pieces that tensors are cut into, see `divide`.
    """

    def __init__(self, entry: Any, memories: Iterable[int], target: int) -> None:
        self._entry = entry.ctypes
        self._table: array[int] = array("q", memories)
        table = self._table
        self.rows = len(table) // 5
        self.elements = sum(table[2::5])
        self.channels = sum(table[3::5])
        self.bins = min(self.elements, self.rows * MOST_BINS)
        self.threads = self.pieces = self.piece_bins = self.piece_channels = 0
        memory = table.buffer_info()[0]
        self._arguments: array[int] = array(
            "q", (0, memory, self.rows, 0, 0, target, 0, 0, 0, 0, 0, entry.address, 0)
        )
        self._address: int = self._arguments.buffer_info()[0]

    def __call__(self, what: int) -> None:
        """Do `what`; ``SWEEP`` may be called by several threads at once."""
        self._arguments[_WHAT] = what
        self._entry(self._address)

    def move(self, address: int) -> None:
        """The one tensor lies at this address now."""
        self._table[0] = address

    def divide(self, threads: int, cut: int) -> None:
        """Let it be made by so many threads, tensors being cut into pieces of `cut` elements."""
        table = self._table
        self.threads = self._arguments[_TEAM + 2] = threads
        self._arguments[_CUT] = cut
        self.pieces = self.rows + self.elements // cut
        self.piece_bins = min(self.elements, self.pieces * MOST_BINS)
        self.piece_channels = sum(
            (c + APART) * (1 + n // cut) for n, c in zip(table[2::5], table[3::5], strict=True)
        )

    def use(self, space: int) -> None:
        """Use the buffers whose addresses stand at the address `space`."""
        self._arguments[_SPACE] = space

    def measure(self, space: int, team: int) -> int:
        """Do ``MEASURE`` in these buffers, in the threads of a team if it is not 0.

        Returns
        -------
        Rows whose magnitudes are too extreme for sums of squares.
        """
        arguments = self._arguments
        arguments[_WHAT], arguments[_SPACE], arguments[_TEAM] = MEASURE, space, team
        self._entry(self._address)
        return self.extreme

    def memory(self, row: int) -> list[int]:
        """(address, code, elements, channels, inner) of a row."""
        return self._table[5 * row : 5 * row + 5].tolist()

    @property
    def extreme(self) -> int:
        """Rows whose magnitudes are too extreme for sums of squares."""
        return self._arguments[_EXTREME]
