"""How far apart steps are saved where that is not said, but how much time saving may take."""

from __future__ import annotations

from collections import deque
from statistics import median

__all__ = ["AutoInterval"]

_FIRST = 2
"""Every second step at first: those between are what it is compared with."""
_MOST = 4096
_SOON, _LATER = 4, 15
"""Saved steps that are compared before the distance is first chosen, and in the long run: on a busy machine
some of them take many times as long as others."""


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

    __slots__ = ("_before", "_budget", "_enough", "_pairs", "_together", "every")

    def __init__(self, budget: float) -> None:
        self.every = _FIRST
        self._budget = budget
        self._enough = _SOON
        self._before: tuple[int, int] | None = None
        """The last step, if it was not saved: what it took, and what of it capture took."""
        self._pairs: deque[tuple[int, int, int]] = deque(maxlen=_LATER)
        """Saved steps, each compared with the one before: what that took without capture, how much more
        capture took, and how much longer the whole step."""
        self._together = 0
        """Saved steps that follow a saved one, since the distance was changed."""

    def add(self, took_ns: int, capture_ns: int, *, saved: bool, steps: int = 1) -> bool:
        """Take what a step took, and what of it capture took; return whether the distance is another now.

        A saved step may cost more than capture takes in it: of a compiled model it runs eagerly. Where a
        framework makes several `steps` in one call, what the call took: while each call has a saved step,
        the distance grows.
        """
        if not saved:
            self._before = took_ns, capture_ns
            return False
        if self._before is None:
            self._together += 1
            return self._together >= _SOON and self._change(min(2 * self.every, _MOST))
        before, before_capture = self._before
        self._before = None
        self._pairs.append((before - before_capture, capture_ns - before_capture, took_ns - before))
        if len(self._pairs) < self._enough:
            return False
        self._enough = min(2 * self._enough, _LATER)
        every = self._affordable(steps)
        return self.every != 2 * every and self._change(every)  # else two distances might take turns

    def _affordable(self, steps: int) -> int:
        bare, captured, longer = (median(column) for column in zip(*self._pairs, strict=True))
        wanted = max(captured, longer) / (max(1.0, bare) / steps * self._budget)
        every = _FIRST
        while every < min(wanted, _MOST):
            every *= 2
        return every

    def _change(self, every: int) -> bool:
        if every == self.every:
            return False
        self.every = every
        self._together = 0
        self._pairs.clear()
        return True
