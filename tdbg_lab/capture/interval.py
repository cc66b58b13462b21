"""How far apart steps are saved where that is not said, but how much time saving may take."""

from __future__ import annotations

from collections import deque
from statistics import median

__all__ = ["AutoInterval"]

_FIRST = 2
"""Every second step at first: those between are what it is compared with."""
_MOST = 4096
_KEPT = 9
"""Steps of either kind whose median counts: a hiccup among them does not matter."""
_LEAST = 4
"""Of either kind, before anything is chosen."""


class AutoInterval:
    """Saves as often as takes at most a share of the time that training takes without.

    Distances are powers of two, and steps that are saved are their multiples. So of several processes,
    of which each chooses for itself, one saves all the steps that a slower one saves.

    Parameters
    ----------
    budget
        The share, 0.05 for 5 %. What capture takes in steps that are not saved does not count: no distance
        changes it.

    Attributes
    ----------
    every
        The distance in steps.
    """

    __slots__ = ("_budget", "_saved", "_unsaved", "every")

    def __init__(self, budget: float) -> None:
        self.every = _FIRST
        self._budget = budget
        self._saved: deque[tuple[int, int]] = deque(maxlen=_KEPT)
        self._unsaved: deque[tuple[int, int]] = deque(maxlen=_KEPT)

    def add(self, took_ns: int, capture_ns: int, *, saved: bool, steps: int = 1) -> bool:
        """Take what a step took, and what of it capture took; return whether the distance is another now.

        A saved step may cost more than capture takes in it: of a compiled model it runs eagerly. Where a
        framework makes several `steps` in one call, what the call took: while each call has a saved step,
        the distance grows.
        """
        (self._saved if saved else self._unsaved).append((took_ns, capture_ns))
        if not saved or len(self._saved) < _LEAST:
            return False
        if 0 < len(self._unsaved) < _LEAST:
            return False
        every = self._affordable(steps) if self._unsaved else min(2 * self.every, _MOST)
        if self.every in {every, 2 * every}:  # else two distances might take turns
            return False
        if every < self.every and len(self._saved) < _KEPT:
            return False
        self.every = every
        self._saved.clear()
        return True

    def _affordable(self, steps: int) -> int:
        usual, usual_capture = _medians(self._unsaved)
        took, capture = _medians(self._saved)
        bare = max(1.0, usual - usual_capture) / steps
        wanted = max(capture - usual_capture, took - usual) / (bare * self._budget)
        every = _FIRST
        while every < min(wanted, _MOST):
            every *= 2
        return every


def _medians(steps: deque[tuple[int, int]]) -> tuple[float, float]:
    return median(took for took, _ in steps), median(capture for _, capture in steps)
