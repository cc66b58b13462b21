"""The bound on what one layer, function or loss gives in a step: networks may be unrolled over any length."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdbg_lab.capture.engine import Engine

__all__ = ["MAX_CALLS", "tell_of_more"]

MAX_CALLS = 64
"""Values of one name at one place (step, mode and micro-step)."""


def tell_of_more(engine: Engine, name: str) -> None:
    """Say once that `name` has more values in a step than are recorded."""
    engine.guard.notice(
        "calls",
        f"only the first {MAX_CALLS} values of {name} in a step are recorded, and of whatever else is called "
        "that often",
    )
