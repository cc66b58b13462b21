"""Values as strict JSON: browsers reject NaN and Infinity, so these travel as strings."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Any

import numpy as np

__all__ = ["encode", "jsonable"]

MAX_DEPTH = 32
"""Containers within containers; deeper ones come from a damaged or hostile run directory."""


def encode(value: object) -> bytes:
    """Compact UTF-8 JSON of `value`."""
    return json.dumps(jsonable(value), allow_nan=False, separators=(",", ":")).encode()


def jsonable(value: Any, *, depth: int = MAX_DEPTH) -> Any:
    """`value` in terms of dict, list, str, int, float, bool and None.

    Containers nested deeper than `depth` become ``"..."``.

    Raises
    ------
    TypeError
        For a type that has no meaning in JSON.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Enum):
        return jsonable(value.value, depth=depth)
    if isinstance(value, str | PurePath):
        return str(value)
    if isinstance(value, np.generic):
        return jsonable(value.item(), depth=depth)
    return _container(value, depth - 1)


def _container(value: Any, depth: int) -> Any:
    if depth < 0:
        return "..."
    if isinstance(value, Mapping):
        return {str(key): jsonable(item, depth=depth) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist(), depth=depth)
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes | bytearray):
        return [jsonable(item, depth=depth) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: jsonable(getattr(value, each.name), depth=depth) for each in dataclasses.fields(value)
        }
    raise TypeError(f"{type(value).__name__} has no meaning in JSON.")


def _number(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float(value)
