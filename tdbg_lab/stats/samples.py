"""Samples of many tensors in memory, copied in one call, and compared with what is there later."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.stats.call import COMPARE, COPY
from tdbg_lab.stats.engine import engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Samples"]


class Samples:
    """Copies of evenly spread elements of float32 tensors. Make it when the engine is usable.

    Parameters
    ----------
    addresses : sequence of int
        Where each tensor lies, whole, without gaps.
    plans : sequence of (blocks, width, step)
        What is looked at of each: `blocks` stretches of `width` elements, `step` elements apart.
    """

    def __init__(self, addresses: Sequence[int], plans: Sequence[tuple[int, int, int]]) -> None:
        self._table = array("q")
        for address, plan in zip(addresses, plans, strict=True):
            self._table.extend((address, *plan, 0))
        self._old = np.empty(sum(blocks * width for blocks, width, _ in plans), np.float32)
        self._address: int = self._table.buffer_info()[0]
        engine().call_with(COPY, self._address, len(plans), space=self._old.ctypes.data)

    def ratios(self, addresses: Sequence[int]) -> NDArray[np.float64]:
        """``|new - old| / |old|`` of each, as L2 norms of what is looked at; the tensors may have moved."""
        for row, address in enumerate(addresses):
            self._table[5 * row] = address
        found = np.empty(len(addresses))
        space, target = self._old.ctypes.data, found.ctypes.data
        engine().call_with(COMPARE, self._address, len(found), space=space, target=target)
        return found
