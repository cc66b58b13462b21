"""Collections as a store describes them, and which tensors belong to them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tdbg_lab.store.layout import read_json
from tdbg_lab.store.limits import MAX_NAME_CHARS, MAX_TENSORS
from tdbg_lab.store.smdebug.bounds import MAX_COLLECTIONS, MAX_PATTERN_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

__all__ = ["SmdebugCollection", "matches", "members", "read_collections"]

_REPETITION = re.compile(r"(?<!\\)[*+{]")
_REPEATED_GROUP = re.compile(r"(?<!\\)\)[*+{]")
_UNLESS = re.compile(r"\((?:\?:)?\(\?![^()*+{}?|]*\)\.\)[*+]")
"""Characters where something does not begin, ``((?!bias).)*`` (TensorFlow's hook): as harmless as ``.*``."""
_MAX_REPETITIONS = 3


@dataclass(frozen=True, slots=True)
class SmdebugCollection:
    """A named set of tensors, as smdebug wrote it down."""

    name: str
    include_regex: tuple[str, ...] = ()
    """Searched anywhere in a name."""
    tensor_names: tuple[str, ...] = ()
    """Those known when the file was written."""
    reduction_config: dict[str, Any] | None = None
    save_config: dict[str, Any] | None = None
    save_histogram: bool = True


def read_collections(path: Path) -> tuple[dict[str, SmdebugCollection], int]:
    """Collections of one file, and the number of workers it tells.

    Raises
    ------
    OSError, ValueError
        If it cannot be read or is no file of collections.
    """
    value = read_json(path)
    described, meta = value.get("collections"), value.get("_meta")
    if not isinstance(described, dict) or len(described) > MAX_COLLECTIONS:
        raise ValueError("it holds no collections")
    workers = meta.get("num_workers") if isinstance(meta, dict) else None
    found = {name[:MAX_NAME_CHARS]: _collection(name, each) for name, each in described.items()}
    return found, workers if isinstance(workers, int) and 0 < workers < 2**31 else 1


def _collection(name: str, value: Any) -> SmdebugCollection:
    if not isinstance(value, dict):
        raise ValueError(f"the collection {name[:80]!r} is no object")  # noqa: TRY004 - content is wrong
    reduction, save = value.get("reduction_config"), value.get("save_config")
    return SmdebugCollection(
        name[:MAX_NAME_CHARS],
        _texts(value.get("include_regex"), MAX_PATTERN_CHARS),
        _texts(value.get("tensor_names"), MAX_NAME_CHARS),
        reduction if isinstance(reduction, dict) else None,
        save if isinstance(save, dict) else None,
        bool(value.get("save_histogram", True)),
    )


def _texts(value: Any, limit: int) -> tuple[str, ...]:
    items = value[:MAX_TENSORS] if isinstance(value, list) else ()
    return tuple(item for item in items if isinstance(item, str) and len(item) <= limit)


def members(
    collections: Iterable[SmdebugCollection], names: Sequence[str], refused: Callable[[str, str], None]
) -> dict[str, tuple[str, ...]]:
    """Collections of each tensor: those that list it or have a regular expression found in it.

    Parameters
    ----------
    names
        Of the tensors.
    refused
        Called with the collection and the expression when that cannot be searched for.
    """
    found: dict[str, list[str]] = {name: [] for name in names}
    for collection in collections:
        inside = {name for name in collection.tensor_names if name in found}
        for pattern in collection.include_regex:
            hits = matches(pattern, names)
            if hits is None:
                refused(collection.name, pattern)
            else:
                inside |= hits
        for name in inside:
            found[name].append(collection.name)
    return {name: tuple(sorted(of)) for name, of in found.items()}


def matches(pattern: str, names: Iterable[str]) -> set[str] | None:
    """Names in which a pattern is found; None when it is not safe to try.

    The pattern comes from the store: one that may take exponential time (a repeated group) or high
    powers of the length (many repetitions) goes to RE2, which takes linear time but knows no
    look-around.
    """
    costly = _UNLESS.sub(".*", pattern)
    few = len(_REPETITION.findall(costly)) <= _MAX_REPETITIONS
    if few and not _REPEATED_GROUP.search(costly):
        try:
            search = re.compile(pattern).search
        except (re.error, RecursionError, OverflowError):
            return None
        return {name for name in names if search(name)}
    return _matches_linear(pattern, list(names))


def _matches_linear(pattern: str, names: list[str]) -> set[str] | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        found = pc.match_substring_regex(pa.array(names, pa.utf8()), pattern)
    except pa.ArrowInvalid:
        return None
    return {name for name, hit in zip(names, found.to_pylist(), strict=True) if hit}
