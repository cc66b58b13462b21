"""Which patterns from outside are let through: while one is matched all threads of a server wait."""

from __future__ import annotations

import math
import re
from re import _constants as signs  # type: ignore[attr-defined, unused-ignore]
from re import _parser as parser  # type: ignore[attr-defined, unused-ignore]
from typing import Any

__all__ = ["MOST_REPEATS", "is_simple"]

MOST_REPEATS = 4
"""Each one more multiplies what there is to try by the length of a name."""
_REPEATS = {signs.MAX_REPEAT, signs.MIN_REPEAT, signs.POSSESSIVE_REPEAT}


def is_simple(pattern: str) -> bool:
    """Whether a pattern has few repeats, and none nor alternatives within what is repeated.

    Raises
    ------
    re.error, OverflowError
        If it is none.
    """
    re.compile(pattern)
    return _choices(parser.parse(pattern)) <= MOST_REPEATS


def _choices(part: Any, *, repeated: bool = False) -> float:
    """Places at which a match may go on in several ways; without end where such a place is repeated."""
    if isinstance(part, parser.SubPattern):
        return sum(_choices_of(sign, value, repeated=repeated) for sign, value in part)
    if isinstance(part, (tuple, list)):
        return sum(_choices(one, repeated=repeated) for one in part)
    return 0


def _choices_of(sign: Any, value: Any, *, repeated: bool) -> float:
    if sign in _REPEATS:
        least, most, body = value
        own = least != most
        return math.inf if own and repeated else own + _choices(body, repeated=repeated or most > 1)
    if sign is signs.BRANCH and repeated:
        return math.inf
    return _choices(value, repeated=repeated)
