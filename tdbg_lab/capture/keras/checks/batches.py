"""A digest of the inputs of each step: tells whether two steps or epochs saw the same data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

import keras
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.capture.keras.backends.base import Backend
    from tdbg_lab.capture.notes import Notes

__all__ = ["BatchWatch", "digest"]

_DIGESTED = 2048
"""Elements of a tensor that a digest is made of, about."""
_MAX_TENSORS = 4


class BatchWatch:
    """One number for the inputs of each step. Inputs on another device are not looked at.

    Neither are those of TensorFlow: only saved steps of it are looked ahead to; and with a seed, Keras gives
    it the same order in each epoch, whatever is said of shuffling.
    """

    def __init__(self, backend: Backend, notes: Notes) -> None:
        self._backend = backend
        self._notes = notes

    def look(self, batch: Any) -> None:
        """Note the digest of what a step trains on: inputs, targets, weights, as Keras hands them to it."""
        x, _, _ = keras.utils.unpack_x_y_sample_weight(batch)
        found, seen = 0, False
        for one in keras.tree.flatten(x)[:_MAX_TENSORS]:
            values = self._backend.at_hand(one)
            if values is not None and values.dtype.kind != "O":
                found, seen = digest(values, found), True
        if seen:
            self._notes.set("batch", float(found))


def digest(values: NDArray[Any], start: int = 0) -> int:
    """A checksum of 32 bits over the shape and some evenly spread values, going on from `start`."""
    start = crc32(repr(values.shape).encode(), start)
    if values.ndim and values.size > _DIGESTED:
        rows = max(2, len(values) * _DIGESTED // values.size)  # at least two of large ones
        values = values[:: max(1, len(values) // rows)]
        if values.size > 2 * _DIGESTED:
            values = values.reshape(-1)[:: values.size // _DIGESTED | 1]
    return crc32(np.ascontiguousarray(values).tobytes(), start)
