"""Some values of a weight, by which it is known again."""

from __future__ import annotations

__all__ = ["places"]

_SAMPLE = 64
"""Values of each weight that are kept and compared."""


def places(count: int) -> slice:
    """Some evenly spread elements of `count`. The stride is odd, lest they all are of a few columns."""
    stride = count // _SAMPLE | 1
    return slice(0, stride * _SAMPLE, stride)
