"""Small functions that user code imports by these names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = ["flatten", "is_s3", "make_numpy_array", "match_inc", "size_and_shape", "split", "step_in_range"]

_S3 = re.compile(r"s3://([^/]+)(?:/(.*))?")


def flatten(lis: Iterable[Iterable[Any]]) -> list[Any]:
    """The members of all lists of a list."""
    return [one for part in lis for one in part]


def is_s3(path: str) -> tuple[bool, str | None, str | None]:
    """Whether a path is in an S3 bucket, its name, and the key in it."""
    match = _S3.fullmatch(path)
    return (True, match[1], match[2] or "") if match else (False, None, None)


def make_numpy_array(x: Any) -> NDArray[Any]:
    """Numbers, lists of them, and arrays as an array with at least one dimension."""
    return x if isinstance(x, np.ndarray) else np.atleast_1d(np.asarray(x))


def match_inc(tname: str, include: Iterable[str]) -> bool:
    """Whether any of the patterns is found in a name."""
    return any(re.search(pattern, tname) for pattern in include)


def size_and_shape(t: Any) -> tuple[int, tuple[int, ...]]:
    """Size in bytes, and shape."""
    array = make_numpy_array(t)
    return array.nbytes, array.shape


def split(comma_separated_string: str) -> list[str]:
    """The parts between commas, without blanks around them."""
    return [part.strip() for part in comma_separated_string.split(",")]


def step_in_range(range_steps: Sequence[int | None] | None, step: int) -> bool:
    """Whether a step lies from the first of two numbers on and before the second; None leaves an end open."""
    if range_steps is None:
        return True
    first, end = range_steps
    return (first is None or step >= first) and (end is None or step < end)
