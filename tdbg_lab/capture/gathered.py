"""The rows of one place, from several hands, put in the order in which they were read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.stats.block import concat, scalar_block, take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tdbg_lab.records import StatsBlock, TensorKey

__all__ = ["Gathered"]


@dataclass(slots=True)
class Gathered:
    """Rows measured at once, numbers, and blocks, in this order; blocks know where they came."""

    keys: list[TensorKey]
    parts: list[StatsBlock]
    measured: int
    """Rows measured at once."""
    numbers: int
    places: list[int] = field(default_factory=list)
    """Rows that had been measured at once before each block."""
    lengths: list[int] = field(default_factory=list)
    """Rows of each block, or of what is told apart in one."""

    def add(
        self, keys: Sequence[TensorKey], block: StatsBlock, places: list[int], lengths: list[int]
    ) -> None:
        """Add a block, whose rows came at several places."""
        self.keys += keys
        self.parts.append(block)
        self.places += places
        self.lengths += lengths

    def add_numbers(self, keys: Sequence[TensorKey], values: Sequence[float]) -> None:
        """Add numbers, behind everything else that was measured."""
        if len(keys):
            self.add(keys, scalar_block(values), [self.measured], [len(keys)])

    def rows(self) -> tuple[list[TensorKey], StatsBlock]:
        """Keys and rows in order: each block where it came, numbers last."""
        rows = concat(self.parts)
        if not self.places or min(self.places) >= self.measured:
            return self.keys, rows
        order = self._order()
        return [self.keys[row] for row in order], take(rows, order)

    def _order(self) -> NDArray[np.intp]:
        came = np.concatenate(
            [
                np.arange(self.measured),
                np.full(self.numbers, np.inf),
                # before the row that came after it
                np.repeat(np.minimum(self.places, self.measured) - 0.5, self.lengths),
            ]
        )
        return np.argsort(came, kind="stable")
