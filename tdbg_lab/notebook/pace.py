"""How often a live picture is drawn again."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Pace"]


@dataclass
class Pace:
    """Turns what the last drawing cost into the wait before the next one.

    Drawing shares the interpreter with the training, so it may take at most `share` of a core: the
    wait grows with the cost.
    """

    interval_s: float = 1.0
    """Shortest wait, seconds."""
    share: float = 0.03
    """Largest share of one core, 0 to 1."""
    slowest_s: float = 30.0
    """Longest wait, seconds: even a dear picture stays alive."""
    _debt_s: float = 0.0

    def wait_s(self, cost_s: float) -> float:
        """Seconds to wait after a turn that took `cost_s` seconds of processor time.

        What the longest wait leaves unpaid is carried over to the turns that follow.
        """
        due = self._debt_s + cost_s / self.share - cost_s
        wait = min(max(self.interval_s, due), self.slowest_s)
        self._debt_s = min(max(0.0, due - wait), self.slowest_s)
        return wait
