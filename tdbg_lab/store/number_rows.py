"""Rows of one number each, such as the losses of steps that hold nothing else, before they are columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import StatsRows
from tdbg_lab.stats.block import scalar_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.records import Mode, TensorKey

__all__ = ["NumberRows"]

_SMALL, _LARGE = 1e-37, 1e38
"""Magnitudes well within float32."""


@dataclass(frozen=True, slots=True)
class NumberRows:
    """N numbers of several steps, of one mode.

    Such a batch comes at every step of some tenths of a second, after a large product has emptied the caches.
    Each operation of numpy takes ten times as long then as in a loop by itself: plain numbers do not.
    """

    steps: Sequence[int]
    """Shape ``(N,)``, as all of them."""
    time_ns: Sequence[int]
    keys: tuple[TensorKey, ...]
    values: Sequence[float]
    mode: Mode
    micro: int

    @property
    def ordinary(self) -> bool:
        """Whether all are finite, not zero, and known to float32: each row has one bin, of one element."""
        return all(_SMALL < abs(value) < _LARGE for value in self.values)

    def rows(self) -> StatsRows:
        """The same with all columns of statistics."""
        columns: Any = {
            "step": np.asarray(self.steps, np.int64),
            "time_ns": np.asarray(self.time_ns, np.int64),
        }
        block = scalar_block(self.values)
        return StatsRows(**columns, mode=self.mode, micro=self.micro, keys=self.keys, block=block)
