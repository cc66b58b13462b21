"""Bounds on what one layer, function or loss gives in a step.

Networks may be unrolled over any length, and an evaluation may never end: a model that has been trained is
called again and again where another one learns from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdbg_lab.capture.engine import Engine

__all__ = ["MANY", "MAX_CALLS", "is_spread", "tell_of_more"]

MAX_CALLS = 64
"""Values of one name at one place (step, mode and micro-step)."""

MANY = 256
"""Forwards of one place without a backward, after which layers are seen ever more rarely."""


def is_spread(forward: int) -> bool:
    """Whether layers are seen in a forward, by its number: every 2nd from `MANY` on, 4th from twice that."""
    return forward % (1 << (forward // MANY).bit_length()) == 0


def tell_of_more(engine: Engine, name: str) -> None:
    """Say once that `name` has more values in a step than are recorded."""
    engine.guard.notice(
        "calls",
        f"only the first {MAX_CALLS} values of {name} in a step are recorded, and of whatever else is called "
        "that often",
    )
