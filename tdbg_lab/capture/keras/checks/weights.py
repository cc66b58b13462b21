"""Weights between the steps: changed by somebody else than the optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.keras.backends.base import Backend
    from tdbg_lab.capture.keras.naming import WeightSite
    from tdbg_lab.capture.notes import Notes

__all__ = ["WeightWatch"]

_LEAST = 16
"""Values of the smallest weight: of fewer, other ones may be alike by chance."""
_MAX_WEIGHTS = 32
_UNLIKE = 0.5
"""Correlation with what was there before, below which a weight was replaced."""


@dataclass(slots=True)
class _Watched:
    site: WeightSite
    first: NDArray[Any]
    """Some of its values when recording began."""
    left: Any = None
    """What the backend remembers of it since the last step."""


class WeightWatch:
    """Compares weights before a step with what the step before it left."""

    def __init__(self, backend: Backend, notes: Notes) -> None:
        self._backend = backend
        self._notes = notes
        self._watched: dict[str, _Watched] = {}
        self._told: set[str] = set()

    def find(self, sites: Sequence[WeightSite]) -> None:
        """Forget all that was seen: the layers changed."""
        large = [one for one in sites if one.kind is Kind.WEIGHT and _is_large(one.variable.shape)]
        self._watched = {site.name: _Watched(site, np.zeros(0)) for site in large[:_MAX_WEIGHTS]}

    def before(self, read: Callable[[Any], Any]) -> None:
        """A step is about to begin."""
        told: set[str] = set()
        for name, one in self._watched.items():
            value = read(one.site.variable)
            if not one.first.size:
                one.first = self._backend.few(value)
            if one.left is None:
                continue
            left, one.left = one.left, None
            before = self._backend.replaced(value, left)
            if before is not None:
                told |= self._judge(name, one, before, self._backend.few(value))
        for name in self._told - told:
            self._notes.clear(name)
        self._told = told

    def _judge(self, name: str, one: _Watched, before: NDArray[Any], now: NDArray[Any]) -> set[str]:
        """Note that a weight was replaced, or set back; the names of what was noted."""
        likeness = _likeness(before, now)
        if likeness < _UNLIKE:
            found = f"replaced/{name}"
        elif np.array_equal(now, one.first) and not np.array_equal(before, now):
            found = f"set_back/{name}"
        else:
            return set()
        self._notes.set(found, 1.0 - likeness, module=one.site.module)
        return {found}

    def after(self, read: Callable[[Any], Any] | None) -> None:
        """A step is over; without `read`, one that was not looked at: what was before it is of no use."""
        trained = [one for one in self._watched.values() if one.site.variable.trainable]
        for one in self._watched.values():
            one.left = None
        if read is not None and trained:
            left = self._backend.left([read(one.site.variable) for one in trained])
            for one, known in zip(trained, left, strict=True):
                one.left = known


def _is_large(shape: Sequence[int]) -> bool:
    return len(shape) > 1 and prod(shape) >= _LEAST


def _likeness(before: NDArray[np.float64], now: NDArray[np.float64]) -> float:
    """Correlation; 1.0 when there is nothing to compare."""
    before, now = before - before.mean(), now - now.mean()
    scale = float(np.linalg.norm(before))
    if scale == 0.0 or not np.isfinite(scale):
        return 1.0
    return float(before @ now) / (scale * (float(np.linalg.norm(now)) or 1.0))
