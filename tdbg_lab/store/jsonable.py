"""Values people pass in, as JSON: bounded, NaN and infinities as strings, nothing pickled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from tdbg_lab.store.limits import MAX_TEXT_CHARS

_NON_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_MAX_DEPTH = 8
_MAX_ITEMS = 10_000


def jsonable(value: Any, depth: int = 0) -> Any:
    """`value` as JSON types; what has none becomes its text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return number_out(value)
    if isinstance(value, str):
        return str(value)[:MAX_TEXT_CHARS]
    if depth < _MAX_DEPTH and isinstance(value, Mapping):
        pairs = list(value.items())[:_MAX_ITEMS]
        return {str(key)[:MAX_TEXT_CHARS]: jsonable(item, depth + 1) for key, item in pairs}
    if (
        depth < _MAX_DEPTH
        and isinstance(value, (Sequence, AbstractSet))
        and not isinstance(value, (bytes, bytearray))
    ):
        return [jsonable(item, depth + 1) for item in list(value)[:_MAX_ITEMS]]
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "size", 2) == 1:  # a numpy scalar
        return jsonable(item(), depth + 1)
    return str(value)[:1000]


def number_out(value: float) -> float | str:
    """A float for JSON: non-finite ones as ``"NaN"``, ``"Infinity"``, ``"-Infinity"``."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def encodable(text: str) -> str:
    """`text` as UTF-8 can hold it: bytes that are none and halves of characters become escapes."""
    return text.encode(errors="backslashreplace").decode()


def float_in(value: Any) -> float | None:
    """A number of a file as a float; None for what is none, or an integer beyond all floats."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def int_in(value: Any) -> int:
    """A number of a file as an integer of 64 bits.

    Raises
    ------
    ValueError
        If it is none.
    """
    number = float_in(value)
    if number is None or not abs(number) < 2**63:
        raise ValueError("not an integer of 64 bits")
    return int(value)


def number_in(value: Any) -> Any:
    """The inverse of `number_out`; anything else as it is."""
    return _NON_FINITE.get(value, value) if isinstance(value, str) else value
