"""A digest of the inputs of each step: tells whether two steps or epochs saw the same data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from tdbg_lab.capture.checksum import checksum

if TYPE_CHECKING:
    from tdbg_lab.capture.keras.backends.base import Backend
    from tdbg_lab.capture.notes import Notes

__all__ = ["BatchWatch"]

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
                found, seen = checksum(values, found), True
        if seen:
            self._notes.set("batch", float(found))
