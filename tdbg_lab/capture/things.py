"""What a user gives as a model or an optimizer: one thing, a mapping or a list of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["by_name", "each"]


def each(things: Any, change: Callable[[Any], Any]) -> Any:
    """What is given, one thing, a mapping or a list of them, with each of them changed."""
    if isinstance(things, Mapping):
        return {name: change(one) for name, one in things.items()}
    if isinstance(things, list | tuple):
        return [change(one) for one in things]
    return change(things)


def by_name(things: Any, of: type) -> dict[str, Any] | None:
    """Always a mapping: one thing of type `of` has the name ``""``, those of a list their position.

    What is in a mapping or a list is not checked. None when `things` is none of the three.
    """
    if things is None:
        return {}
    if isinstance(things, of):
        return {"": things}
    if isinstance(things, Mapping):
        return {str(name): one for name, one in things.items()}
    if isinstance(things, Sequence) and not isinstance(things, str):
        return {str(index): one for index, one in enumerate(things)} if len(things) != 1 else {"": things[0]}
    return None
