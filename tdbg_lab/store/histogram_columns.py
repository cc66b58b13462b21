"""Histograms of a growing tensor in few columns, kept: each time only what is new is read and merged."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.stats.block import empty_block, merge, take
from tdbg_lab.store.limits import HISTOGRAM_COLUMN_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import StatsBlock

__all__ = ["HistogramColumns", "KeptColumns", "Place"]

Place = tuple[str, int, "int | None", int]
"""Tensor, mode code, rank and the most columns."""


@dataclass(frozen=True, slots=True)
class KeptColumns:
    """The columns of a tensor to which nothing is added any more."""

    width: int
    """Saved steps in each, a power of two: when it doubles, two columns become one."""
    ends: NDArray[np.int64]
    """Last step of each, ascending, shape ``(C,)``."""
    block: StatsBlock
    """``C`` rows."""
    mark: tuple[int, int] = (0, 0)
    """Of all that was written up to the last of them, see `mark_of`."""

    def wide(self, width: int) -> KeptColumns:
        """The same steps in columns of at least their own width; those that fill no column are left out."""
        ratio = width // self.width
        if ratio == 1:
            return self
        full = len(self.ends) // ratio
        rows = take(self.block, slice(full * ratio))
        merged = merge(rows, np.arange(len(rows)) // ratio, full)
        return KeptColumns(width, self.ends[ratio - 1 :: ratio], merged)

    def fitting(self, new: int, most: int) -> int:
        """The width at which they and `new` more steps make at most so many columns."""
        steps = self.width * len(self.ends) + new
        width = self.width
        while -(-steps // width) > most:
            width *= 2
        return width

    @property
    def nbytes(self) -> int:
        """Of its arrays."""
        values = (getattr(self.block, field.name) for field in fields(self.block))
        return self.ends.nbytes + sum(one.nbytes for one in values if isinstance(one, np.ndarray))


class HistogramColumns:
    """Columns of the tensors asked for last. Not thread-safe: the reader holds its lock."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Place, KeptColumns] = OrderedDict()

    def get(self, place: Place, written: NDArray[np.int64]) -> KeptColumns:
        """What is kept of a tensor; no columns when there are none, or something was written to them since.

        Parameters
        ----------
        written
            Mode code, step and last time of all that was written in its mode, shape ``(S, 3)``.
        """
        kept = self._kept.get(place)
        if kept is None or mark_of(written, int(kept.ends[-1])) != kept.mark:
            return KeptColumns(1, np.empty(0, np.int64), empty_block())
        self._kept.move_to_end(place)
        return kept

    def put(self, place: Place, columns: KeptColumns, written: NDArray[np.int64]) -> None:
        """Keep columns, at least one, as of what was written."""
        self._kept[place] = replace(columns, mark=mark_of(written, int(columns.ends[-1])))
        self._kept.move_to_end(place)
        while len(self._kept) > 1 and sum(one.nbytes for one in self._kept.values()) > HISTOGRAM_COLUMN_BYTES:
            self._kept.popitem(last=False)


def mark_of(written: NDArray[np.int64], last: int) -> tuple[int, int]:
    """Number of steps up to `last` and the sum of their times, which changes when one is written again.

    The sum wraps around, which does no harm to a mark.
    """
    times: NDArray[np.int64] = written[written[:, 1] <= last, 2]
    return len(times), int(times.sum())
