"""Tensors taken apart for measuring, and their rows put together again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from tdbg_lab.stats.block import concat, empty_block, scalar_block, take
from tdbg_lab.stats.layouts import NotMeasuredError, Part, dense_parts, ordinary_memory
from tdbg_lab.stats.merging import merge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from tdbg_lab.records import StatsBlock

__all__ = ["Layout", "sentence", "take_apart"]


@dataclass(slots=True)
class Layout:
    """How the rows of parts make up the rows of tensors. Holds no tensor."""

    n_rows: int
    owners: list[int] = field(default_factory=list)
    """Tensor that each part belongs to."""
    zeros: list[tuple[int, int]] = field(default_factory=list)
    """(tensor, implicit zeros) of sparse tensors."""
    reasons: dict[int, str] = field(default_factory=dict)
    """Why a tensor has no part."""

    def add_parts(self, n: int) -> None:
        """Let tensors follow that are one part each."""
        self.owners += range(self.n_rows, self.n_rows + n)
        self.n_rows += n

    def extend(self, more: Layout) -> None:
        """Let the rows of `more` follow."""
        n = self.n_rows
        self.n_rows += more.n_rows
        self.owners += [owner + n for owner in more.owners]
        self.zeros += [(owner + n, zeros) for owner, zeros in more.zeros]
        self.reasons |= {row + n: reason for row, reason in more.reasons.items()}

    def join(self, parts: StatsBlock) -> StatsBlock:
        """Rows of the tensors from the rows of their parts."""
        if not self.zeros and not self.reasons and self.owners == list(range(self.n_rows)):
            return parts  # as nearly always
        extra = [_zeros(n) for _, n in self.zeros]
        refused = [empty_block(1, reason) for reason in self.reasons.values()]
        groups = [*self.owners, *(owner for owner, _ in self.zeros), *self.reasons]
        rows = concat([parts, *extra, *refused])
        if len(set(groups)) == len(groups):
            return take(rows, np.argsort(groups, kind="stable"))
        return merge(rows, groups, self.n_rows)


def take_apart(tensors: Sequence[Tensor], axes: Sequence[int | None]) -> tuple[list[Part], Layout]:
    """Dense parts of all tensors. A tensor that cannot be measured has a reason instead."""
    parts: list[Part] = []
    layout = Layout(len(tensors))
    for row, (tensor, axis) in enumerate(zip(tensors, axes, strict=True)):
        try:
            if ordinary_memory(tensor, None) is not None:  # most are
                found = [Part(tensor, axis)]
            else:
                with torch.no_grad():
                    found = dense_parts(tensor, axis)
        except NotMeasuredError as error:
            layout.reasons[row] = str(error)
        except Exception as error:  # noqa: BLE001 - whatever a tensor subclass raises is its reason
            layout.reasons[row] = sentence(error)
        else:
            parts += found
            layout.owners += [row] * len(found)
            layout.zeros += [(row, part.zeros) for part in found if part.zeros]
    return parts, layout


def sentence(error: Exception) -> str:
    """An exception as a reason: its class and the first line of its message."""
    text = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {text}"[:200]


def _zeros(n: int) -> StatsBlock:
    """Statistics of `n` zeros."""
    block = scalar_block([0.0])
    block.count[0] = block.zero_count[0] = n
    return block
