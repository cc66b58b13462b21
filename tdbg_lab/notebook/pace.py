"""How often a live picture is drawn again."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

__all__ = ["Pace"]


@dataclass
class Pace:
    """Turns what the last drawings cost into the wait before the next one.

    Drawing shares the interpreter with the training, so it may take at most `share` of a core: the wait
    grows with the cost. The first drawing is not counted: it loads and warms up what later ones use.
    """

    interval_s: float = 1.0
    """Shortest wait, seconds."""
    share: float = 0.03
    """Largest share of one core, 0 to 1."""
    slowest_s: float = 5.0
    """Longest wait, seconds: even a dear picture stays alive, and few runs end before the second one."""
    _costs_s: deque[float] = field(default_factory=lambda: deque(maxlen=3))
    _is_warm: bool = False

    def wait_s(self, cost_s: float, *, drew: bool = True) -> float:
        """Seconds to wait after a turn that took `cost_s` seconds of processor time.

        The median of the last three turns counts, so that one slow turn does not freeze the picture.
        """
        if drew and not self._is_warm:
            self._is_warm = True
            return self.interval_s
        self._costs_s.append(cost_s)
        due = median(self._costs_s) * (1 / self.share - 1)
        return min(max(self.interval_s, due), self.slowest_s)
