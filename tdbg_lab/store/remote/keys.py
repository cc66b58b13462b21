"""Names of objects below a run's prefix.

A file of the run directory keeps its name. A live segment ``rank-00000/stats-000001.arrows`` is a
folder of that name, whose objects ``<identity>-<first byte>-<end byte>`` are ranges of its bytes.
The identity comes from the segment's first message, which is different for every segment ever
written. Ranges of one identity may overlap - a sender was killed and another one went on - but where
they do, they agree.
"""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["RUN_KEY", "ByteRange", "identity", "is_file_key", "is_live", "parse_range", "reach", "sealed_key"]

RUN_KEY: Final = "run.json"
_LIVE_ENDING = ".arrows"
_SEALED_ENDING = ".parquet"
_RANGE = re.compile(r"(.{1,300}\.arrows)/([0-9a-f]{16})-(\d{12})-(\d{12})")
_PART = re.compile(r"[A-Za-z0-9_=][A-Za-z0-9_.=+-]{0,199}")
_MAX_DEPTH = 5
_PREFIX = struct.Struct("<Ii")
_CONTINUATION = 0xFFFFFFFF
_MAX_HEADER_BYTES = 2**20


@dataclass(frozen=True, slots=True, order=True)
class ByteRange:
    """Some bytes of a live segment."""

    segment: str
    """Name of the segment, relative to the run."""
    identity: str
    first: int
    end: int
    """Behind the last byte."""

    @property
    def key(self) -> str:
        """Name of the object."""
        return f"{self.segment}/{self.identity}-{self.first:012d}-{self.end:012d}"


def parse_range(key: str) -> ByteRange | None:
    """The range an object holds by its name, or None when it is another object."""
    match = _RANGE.fullmatch(key)
    if match is None or not is_file_key(match[1]) or int(match[4]) <= int(match[3]):
        return None
    return ByteRange(match[1], match[2], int(match[3]), int(match[4]))


def is_file_key(key: str) -> bool:
    """Whether `key` may name a file of a run directory: plain parts, none hidden, none leading out."""
    parts = key.split("/")
    return len(parts) <= _MAX_DEPTH and all(_PART.fullmatch(part) for part in parts)


def is_live(key: str) -> bool:
    """Whether a file is a live segment, sent in ranges."""
    return key.endswith(_LIVE_ENDING)


def sealed_key(live: str) -> str:
    """Name of the sealed form of a live segment."""
    return live.removesuffix(_LIVE_ENDING) + _SEALED_ENDING


def identity(head: bytes) -> str | None:
    """Who a live segment is, from its first bytes; None while its first message is not complete."""
    if len(head) < _PREFIX.size:
        return None
    marker, size = _PREFIX.unpack_from(head)
    if marker != _CONTINUATION or not 0 < size <= _MAX_HEADER_BYTES:
        return None
    if len(head) < _PREFIX.size + size:
        return None
    return hashlib.sha256(head[: _PREFIX.size + size]).hexdigest()[:16]


def reach(ranges: Iterable[ByteRange]) -> int:
    """How many bytes of a segment `ranges` hold without a gap."""
    known = 0
    for each in sorted(ranges, key=lambda each: each.first):
        if each.first > known:
            break
        known = max(known, each.end)
    return known
