"""What was recorded at one step."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.rules.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tdbg_lab.records import Kind, Mode, StatsBlock, TensorKey

__all__ = ["Frame", "Row"]


@dataclass(frozen=True)
class Frame:
    """Every tensor recorded at one step in one mode, merged over micro-steps and ranks."""

    step: int
    mode: Mode
    time_ns: int
    """When its last row was written."""
    keys: tuple[TensorKey, ...]
    """One per row of `block`, in the order of their first appearance within the step."""
    block: StatsBlock
    memo: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)
    """What rules worked out of this frame and need again at later steps, by keys of their own."""

    @cached_property
    def layout(self) -> Layout:
        """Which tensor stands in which row; one object for all steps that have the same ones."""
        return Layout(self.keys)

    @property
    def index(self) -> dict[str, int]:
        """Row of each tensor, by name."""
        return self.layout.index

    @property
    def kinds(self) -> frozenset[Kind]:
        """Kinds that have a row."""
        return self.layout.kinds

    @classmethod
    def laid_out(cls, step: int, mode: Mode, time_ns: int, layout: Layout, block: StatsBlock) -> Frame:
        """A frame whose layout is known."""
        frame = cls(step, mode, time_ns, layout.keys, block)
        frame.__dict__["layout"] = layout
        return frame

    @cached_property
    def scalar_values(self) -> NDArray[np.float64]:
        """Values of the rows that hold one number, NaN and infinities included. Not to be written to."""
        return self.block.scalar_values

    def rows(self, *kinds: Kind) -> NDArray[np.int64]:
        """Rows of these kinds in order, all of them for none. Not to be written to."""
        return self.layout.rows(kinds)

    def items(self, *kinds: Kind) -> Iterator[tuple[TensorKey, Row]]:
        """Each tensor of these kinds with its statistics."""
        for row in self.rows(*kinds):
            yield self.keys[row], Row(self.block, int(row))

    def get(self, name: str) -> Row | None:
        """Statistics of one tensor, or None when it was not recorded at this step."""
        row = self.index.get(name)
        return None if row is None else Row(self.block, row)


@dataclass(frozen=True, slots=True)
class Row:
    """Statistics of one tensor at one step."""

    block: StatsBlock
    row: int

    def __getattr__(self, name: str) -> float:
        """Any column of `StatsBlock`: ``row.l2``, ``row.nan_count``, ..."""
        if name.startswith("_"):
            raise AttributeError(name)
        column = getattr(self.block, name)
        if not isinstance(column, np.ndarray) or len(column) != len(self.block):
            raise AttributeError(f"{name!r} is not a number per tensor.")
        value: float = column[self.row].item()
        return value

    @property
    def not_finite(self) -> int:
        """NaN and infinite elements."""
        block, row = self.block, self.row
        return int(block.nan_count[row] + block.pos_inf_count[row] + block.neg_inf_count[row])

    @property
    def mean_abs(self) -> float:
        """Mean of the absolute values of the finite elements."""
        finite = int(self.block.finite_count[self.row])
        return float(self.block.l1[self.row]) / finite if finite else float("nan")

    @property
    def value(self) -> float:
        """Value of a scalar, NaN and infinities included."""
        if self.block.nan_count[self.row]:
            return float("nan")
        if self.block.pos_inf_count[self.row]:
            return float("inf")
        return float("-inf") if self.block.neg_inf_count[self.row] else float(self.block.mean[self.row])

    @property
    def channel_zero_frac(self) -> NDArray[np.float32]:
        """Share of zeros per channel, shape ``(C,)``; ``(0,)`` where channels were not measured."""
        block = self.block
        return block.channel_zero_frac[block.channel_offsets[self.row] : block.channel_offsets[self.row + 1]]
