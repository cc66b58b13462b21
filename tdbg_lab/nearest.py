"""The known names that somebody may have meant by one that is not known."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]

_MAX_COMPARED = 5000
"""A run may have many more tensors than are worth the time it takes to compare them."""


def nearest(name: str, known: Iterable[str], *, most: int = 1, cutoff: float = 0.5) -> list[str]:
    """At most `most` of the names that are like this one, or else that hold it."""
    names = list(known)
    near = get_close_matches(name, names[:_MAX_COMPARED], n=most, cutoff=cutoff)
    folded = name.casefold()
    return near or [one for one in names if folded and folded in one.casefold()][:most]


def did_you_mean(name: str, known: Iterable[str], *, most: int = 1) -> str:
    """Sentence that offers the nearest names, as ``" Did you mean 'model'?"``; ``""`` when none is near."""
    near = nearest(name, known, most=most)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
