"""How often the loop is looked at: a healthy one at some of its steps, an odd one at each."""

from __future__ import annotations

__all__ = ["Pace"]

_CLOSELY = 16
"""Steps that are all looked at: the first ones, and those after something odd."""
_EVERY = 3
"""Of the others one in so many. Rules wait for up to four odd steps in a row, of which the first may be two
steps late: so what goes wrong is told within five steps. The number is odd, as many loops take turns."""


class Pace:
    """Whether the current step is looked at, and the next one.

    What is not looked at is not told of: facts stay what they were at the last look.

    Attributes
    ----------
    looking
        Whether the current step is looked at.
    ahead
        Whether the next one is: what it is compared with must be kept at the end of this one.
    resting
        Whether nothing odd came up so far in a step that is not looked at.
    """

    __slots__ = ("_closely_until", "_step", "ahead", "looking", "resting")

    def __init__(self) -> None:
        self.looking = self.ahead = True
        self.resting = False
        self._step = 0
        self._closely_until = _CLOSELY

    def wake(self) -> None:
        """Something was fine and is odd now: look at each of the next steps."""
        self._closely_until = self._step + 1 + _CLOSELY
        self.ahead = True
        self.resting = False

    def next_step(self) -> None:
        """A step is complete."""
        self.looking = self.ahead
        self.resting = not self.looking
        self._step += 1
        after = self._step + 1
        self.ahead = after < self._closely_until or after % _EVERY == 0
