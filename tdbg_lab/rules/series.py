"""A scalar over steps, with bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NO_SCALARS", "Scalars", "Series"]

_HEAD = 1024
_TAIL = 4096


class Scalars(NamedTuple):
    """Values of a scalar."""

    steps: NDArray[np.int64]
    """Ascending, shape ``(S,)``."""
    values: NDArray[np.float64]
    """NaN and infinities kept, shape ``(S,)``."""


NO_SCALARS = Scalars(np.zeros(0, np.int64), np.zeros(0, np.float64))


class Series:
    """Grows step by step; keeps the first 1,024 and at least the last 4,096 points."""

    def __init__(self) -> None:
        self._steps = np.zeros(16, np.int64)
        self._values = np.zeros(16, np.float64)
        self._size = 0
        self._whole: Scalars | None = NO_SCALARS
        """Views of all points: many rules ask for them between two steps."""

    def put(self, step: int, value: float) -> None:
        """Add a point, or replace the one of its step."""
        self._make_room()
        n = self._size
        at = int(np.searchsorted(self._steps[:n], step)) if n and self._steps[n - 1] >= step else n
        if at < n and self._steps[at] == step:
            self._values[at] = value
            return
        self._whole = None
        self._steps[at + 1 : n + 1] = self._steps[at:n]
        self._values[at + 1 : n + 1] = self._values[at:n]
        self._steps[at] = step
        self._values[at] = value
        self._size += 1

    def extend(self, steps: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Add several points, or replace those of their steps."""
        last = self._steps[self._size - 1] if self._size else -1
        in_order = len(steps) and steps[0] > last and np.all(steps[1:] > steps[:-1])
        if not in_order or len(steps) > _TAIL:
            for step, value in zip(steps.tolist(), values.tolist(), strict=True):
                self.put(step, value)
            return
        self._whole = None
        while self._size + len(steps) > len(self._steps):
            self._grow()
        self._steps[self._size : self._size + len(steps)] = steps
        self._values[self._size : self._size + len(steps)] = values
        self._size += len(steps)

    def until(self, step: int) -> Scalars:
        """Points up to `step`, inclusive. Views, not copies."""
        whole = self._whole
        if whole is None:
            whole = self._whole = Scalars(self._steps[: self._size], self._values[: self._size])
        if not self._size or self._steps[self._size - 1] <= step:
            return whole
        n = int(np.searchsorted(whole.steps, step, side="right"))
        return Scalars(whole.steps[:n], whole.values[:n])

    def _make_room(self) -> None:
        if self._size == len(self._steps):
            self._grow()

    def _grow(self) -> None:
        """Make the arrays longer, or forget what stands in the middle."""
        self._whole = None
        if len(self._steps) >= _HEAD + 2 * _TAIL:
            keep = np.r_[0:_HEAD, self._size - _TAIL : self._size]
            self._steps[: len(keep)] = self._steps[keep]
            self._values[: len(keep)] = self._values[keep]
            self._size = len(keep)
            return
        length = min(2 * len(self._steps), _HEAD + 2 * _TAIL)
        self._steps = np.resize(self._steps, length)
        self._values = np.resize(self._values, length)
