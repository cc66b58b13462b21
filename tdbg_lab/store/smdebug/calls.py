"""Files of cProfile (``pstats``), read without trusting them.

They are in Python's `marshal` format, whose own reader may crash on a broken file. Of it only what
such a file holds is read: mappings, tuples, texts and numbers.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MAX_CALLS_BYTES", "Calls", "read_calls"]

MAX_CALLS_BYTES: Final = 64 * 2**20
_MAX_DEPTH = 8
_REFERENCED = 0x80
_END = object()

Function = tuple[str, int, str]
"""File, line and name."""
Calls = dict[Function, tuple[int, int, float, float, dict[Function, Any]]]
"""Primitive calls, calls, own and cumulative time (s), and callers of each function."""


def read_calls(path: Path) -> Calls:
    """What a file of cProfile holds, as `pstats.Stats.stats`.

    Raises
    ------
    OSError
        It cannot be read.
    ValueError
        It is too large, or no such file.
    """
    if path.stat().st_size > MAX_CALLS_BYTES:
        raise ValueError(f"{path.name} is larger than {MAX_CALLS_BYTES} bytes")
    try:
        found = _Reader(path.read_bytes()).value()
        return {_function(key): _row(row) for key, row in found.items()}
    except (struct.error, IndexError, AttributeError, TypeError, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is no profile of cProfile: {error}") from None


def _function(key: Any) -> Function:
    file, line, name = key
    return str(file), int(line), str(name)


def _row(row: Any) -> tuple[int, int, float, float, dict[Function, Any]]:
    primitive, calls, own, cumulative, callers = row
    described = {_function(key): value for key, value in callers.items()}
    return int(primitive), int(calls), float(own), float(cumulative), described


class _Reader:
    """The part of `marshal` that is needed; what else there is raises ValueError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._seen: list[Any] = []

    def value(self, depth: int = 0) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError("nested too deeply")
        code = self._bytes(1)[0]
        kind, kept = chr(code & ~_REFERENCED), bool(code & _REFERENCED)
        if kind == "r":
            return self._seen[self._number("<I")]
        place = len(self._seen)
        if kept:
            self._seen.append(None)
        found = self._of(kind, depth)
        if kept:
            self._seen[place] = found
        return found

    def _of(self, kind: str, depth: int) -> Any:
        if kind == "{":
            return self._mapping(depth)
        if kind in "()":
            size = self._bytes(1)[0] if kind == ")" else self._number("<I")
            return tuple(self.value(depth + 1) for _ in range(min(size, len(self._data))))
        if kind in "uatAzZ":
            size = self._bytes(1)[0] if kind in "zZ" else self._number("<I")
            return self._bytes(size).decode("utf-8", "surrogatepass")
        return self._plain(kind)

    def _plain(self, kind: str) -> Any:
        if kind == "i":
            return self._number("<i")
        if kind == "g":
            return self._number("<d")
        if kind == "l":
            return self._long()
        constants = {"0": _END, "N": None, "T": True, "F": False}
        if kind in constants:
            return constants[kind]
        raise ValueError(f"it holds something of type {kind!r}")

    def _mapping(self, depth: int) -> dict[Any, Any]:
        found = {}
        while (key := self.value(depth + 1)) is not _END:
            found[key] = self.value(depth + 1)
        return found

    def _long(self) -> int:
        size = int(self._number("<i"))
        digits = struct.unpack(f"<{abs(size)}H", self._bytes(2 * abs(size)))
        value = sum(int(digit) << 15 * place for place, digit in enumerate(digits))
        return -value if size < 0 else value

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))[0]

    def _bytes(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise ValueError("it is cut off")
        self._at += size
        return found
