"""Which parameters each of several optimizers moves, and with whom it takes turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch.optim import Optimizer

__all__ = ["Players", "moved_by"]


class Players:
    """Asked at every step, and worked out only when an optimizer has come or was given more parameters.

    Parameters
    ----------
    names
        The optimizers and what they are called; grows and shrinks.
    """

    __slots__ = ("_names", "_rivals", "_sizes", "moved")

    def __init__(self, names: Mapping[Optimizer, str]) -> None:
        self._names = names
        self._sizes: dict[str, int] = {}
        """How many parameters each had when the rest was worked out."""
        self.moved: set[int] = set()
        """``id`` of what any of them moves."""
        self._rivals: dict[str, set[str]] = {}

    def look(self) -> None:
        """See whether anything has changed."""
        sizes = {
            name: sum(len(group["params"]) for group in one.param_groups) for one, name in self._names.items()
        }
        if sizes != self._sizes:
            self._sizes = sizes
            self.moved = set().union(*map(moved_by, self._names))
            self._rivals.clear()

    def rivals_of(self, name: str) -> set[str]:
        """An optimizer, and those that move the same parameters as it or none of them."""
        if name not in self._rivals:
            moved = {other: moved_by(one) for one, other in self._names.items()}
            self._rivals[name] = {
                other for other, ids in moved.items() if other == name or ids.isdisjoint(moved[name])
            }
        return self._rivals[name]


def moved_by(optimizer: Optimizer) -> set[int]:
    """``id`` of its parameters."""
    return {id(one) for group in optimizer.param_groups for one in group["params"]}
