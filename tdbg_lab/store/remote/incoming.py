"""What a listing of a run's prefix says a mirror should hold. Reads nothing but the listing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tdbg_lab.store.limits import MAX_SEGMENT_FILE_BYTES
from tdbg_lab.store.remote.keys import RUN_KEY, ByteRange, is_file_key, is_live, parse_range, sealed_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tdbg_lab.store.remote.objects import ObjectInfo

__all__ = ["Listing", "read_listing"]

MAX_OBJECTS: Final = 500_000
RAW_BYTES: Final = 4 * 2**30
"""Raw values that one mirror holds; the newest of them."""


@dataclass(slots=True)
class Listing:
    """A run prefix at one moment."""

    files: dict[str, ObjectInfo] = field(default_factory=dict)
    """Objects that are files, by key; ``run.json`` is not among them."""
    live: dict[str, list[ByteRange]] = field(default_factory=dict)
    """Ranges of each live segment that is not sealed, all of one identity."""
    live_modified_ns: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read_listing(objects: Iterable[ObjectInfo]) -> Listing:
    """Sort objects into files and ranges; what no run of ours has is left out."""
    found = Listing()
    ranges: dict[str, dict[str, list[tuple[ByteRange, int]]]] = {}
    for count, info in enumerate(objects):
        if count >= MAX_OBJECTS:
            found.problems.append(f"There are more than {MAX_OBJECTS} objects; the rest is not read.")
            break
        part = parse_range(info.key)
        if part is not None:
            if info.size == part.end - part.first and part.end <= MAX_SEGMENT_FILE_BYTES:
                ranges.setdefault(part.segment, {}).setdefault(part.identity, []).append(
                    (part, info.modified_ns)
                )
        elif is_file_key(info.key) and not is_live(info.key) and info.key != RUN_KEY:
            if info.size > MAX_SEGMENT_FILE_BYTES:
                found.problems.append(f"{info.key} has {info.size} bytes, more than is read.")
            else:
                found.files[info.key] = info
    for segment, by_identity in ranges.items():
        if sealed_key(segment) not in found.files:
            newest = max(by_identity.values(), key=lambda parts: max(modified for _, modified in parts))
            found.live[segment] = [part for part, _ in newest]
            found.live_modified_ns[segment] = max(modified for _, modified in newest)
    _limit_raw(found)
    return found


def _limit_raw(found: Listing) -> None:
    """Leave out the oldest raw values where there are too many."""
    raw = [info for key, info in found.files.items() if "/raw/" in key]
    raw.sort(key=lambda info: (info.modified_ns, info.key), reverse=True)
    total = 0
    for info in raw:
        total += info.size
        if total > RAW_BYTES:
            del found.files[info.key]
    if total > RAW_BYTES:
        found.problems.append(f"Only the newest {RAW_BYTES // 2**20} MB of raw values are read.")
