"""Results that grow on a device, row by row, and their copy on the host."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["Column"]

_LEAST_ROOM = 64


class Column:
    """Rows of one type on a device.

    Attributes
    ----------
    rows
        Rows in use.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype, *width: int, zeroed: bool = False) -> None:
        self.rows = 0
        self._room = 0
        self._bytes = prod(width) * dtype.itemsize
        self._zeroed = zeroed
        self._dirty = 0
        """Rows that are not zero any more, where rows are to begin as zeros."""
        self._device = torch.empty(0, *width, dtype=dtype, device=device)
        self._host = torch.empty(0, *width, dtype=dtype)
        self._address = 0

    def clear(self) -> None:
        """Begin anew."""
        self._dirty = max(self._dirty, self.rows)
        self.rows = 0

    def reserve(self, rows: int) -> int:
        """Make room for so many more rows; where the first one lies on the device."""
        first, self.rows = self.rows, self.rows + rows
        if self._zeroed and self._dirty:
            self._device[: self._dirty].zero_()
            self._dirty = 0
        if self.rows > self._room:
            self._grow(first)
        return self._address + first * self._bytes

    def last(self, rows: int) -> Tensor:
        """The last so many rows, on the device."""
        return self._device[self.rows - rows : self.rows]

    def _grow(self, used: int) -> None:
        room = (2 * self.rows + _LEAST_ROOM, *self._device.shape[1:])
        make = torch.zeros if self._zeroed else torch.empty
        new = make(room, dtype=self._device.dtype, device=self._device.device)
        new[:used].copy_(self._device[:used])
        if new.is_cuda and self._room:
            # Its memory may be somebody else's as soon as we let go of it; of the stream that it is from.
            self._device.record_stream(torch.cuda.current_stream(new.device))
        self._device, self._address, self._room = new, new.data_ptr(), room[0]
        self._host = torch.empty(room, dtype=new.dtype, pin_memory=new.is_cuda)

    def pair(self) -> tuple[Tensor, Tensor]:
        """The rows on the device, and where they belong on the host."""
        return self._device[: self.rows], self._host[: self.rows]

    def numpy(self) -> NDArray[Any]:
        """The rows on the host, once they were copied there."""
        array: NDArray[Any] = self._host[: self.rows].numpy()
        return array
