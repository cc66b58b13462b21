"""Objects of a class, found where nobody keeps a list of them."""

from __future__ import annotations

import gc
from typing import TypeVar

__all__ = ["instances_of"]

T = TypeVar("T")


def instances_of(kind: type[T]) -> list[T]:
    """Every object of a class written in Python, or of a class derived from it, that the collector knows.

    The collector is asked who refers to these classes, as their objects do: a third of the time of looking at
    every object from here, and still tens of milliseconds where half a million of them live.
    """
    referrers = gc.get_referrers(*_with_derived(kind))
    # asking the object for its class might load a lazy module
    return [one for one in referrers if issubclass(type(one), kind)]


def _with_derived(kind: type) -> set[type]:
    found, left = {kind}, [kind]
    while left:
        derived: set[type] = set(left.pop().__subclasses__()) - found
        found |= derived
        left.extend(derived)
    return found
