"""One index file: which tensors a worker saved at one step, and where in the event file they stand."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.store.limits import MAX_NAME_CHARS
from tdbg_lab.store.smdebug.bounds import MAX_DIMENSIONS, MAX_PAYLOAD, MAX_RECORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["MODES", "IndexFile", "Layout", "Layouts", "Places", "Reduction"]

MODES = ("TRAIN", "EVAL", "PREDICT", "GLOBAL")
"""What smdebug calls its modes."""
_EVENT_FILE = re.compile(r"events/(\d{12,18})/(\d{12,18}_[^/\\\0]{1,512}\.tfevents)")
_KNOWN_PLACES = 4096
_REDUCTIONS = "smdebug/reductions/"
Reduction = tuple[str, bool]
"""Name (``mean``, ``l2``, ...) and whether it is of the absolute values."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which tensors a file holds, in order; shared by the files that hold the same."""

    records: tuple[str, ...]
    """Names as they stand in the event file."""
    values: dict[str, int]
    """Position of the value of each tensor."""
    reductions: dict[str, dict[Reduction, int]]
    """Positions of its reductions."""
    tensors: tuple[str, ...]
    """All tensors of which there is anything, in the order they were met."""
    members: frozenset[str]
    """The same, to look up."""


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where the records stand in an event file; shared by the files in which they stand alike."""

    starts: NDArray[np.int64]
    """Offset of each record, bytes."""
    lengths: NDArray[np.int64]

    @property
    def end(self) -> int:
        """Offset behind the last record, bytes."""
        return int((self.starts + self.lengths).max())


@dataclass(frozen=True, slots=True, eq=False)
class IndexFile:
    """What one worker saved at one step."""

    step: int
    """Global step."""
    worker: str
    mode: str
    mode_step: int
    event_file: tuple[str, str] | None
    """Folder and name below ``events``; None when there are only shapes."""
    layout: Layout
    places: Places
    shapes: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    """Saved shape of each tensor and its original name."""


class Layouts:
    """Parses index files; keeps one `Layout` for all files that have the same tensors."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], Layout] = {}
        self._places: dict[bytes, Places] = {}

    def parse(self, data: bytes, step: int, worker: str) -> IndexFile:
        """An index file from its content.

        Raises
        ------
        ValueError
            If it is not one.
        """
        try:
            value = json.loads(data)
        except (RecursionError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError("it is not valid JSON") from error
        return self.take(value, step, worker)

    def take(self, value: Any, step: int, worker: str) -> IndexFile:
        """The same from its content as Python's `json` gives it; raises as `parse`."""
        try:
            return self._parse(value, step, worker)
        except (TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError("it is no index of smdebug") from error

    def _parse(self, value: Any, step: int, worker: str) -> IndexFile:
        meta = value["meta"]
        mode = str(meta["mode"]).strip()
        payload = value.get("tensor_payload") or []
        shape_payload = value.get("shape_payload") or []
        if mode not in MODES or len(payload) > MAX_PAYLOAD or len(shape_payload) > MAX_PAYLOAD:
            raise ValueError(f"it has mode {mode[:40]!r} and {len(payload)} tensors")
        records = tuple([item["tensorname"] for item in payload])
        shapes = {item["tensorname"]: _shape(item) for item in shape_payload}
        places = np.array([(item["start_idx"], item["length"]) for item in payload], np.int64)
        starts, lengths = np.ascontiguousarray(places.reshape(-1, 2).T)
        if len(starts) and not (starts.min() >= 0 and 0 < lengths.min() <= lengths.max() < MAX_RECORD_BYTES):
            raise ValueError("it points outside the event file")
        return IndexFile(
            step=step,
            worker=worker,
            mode=mode,
            mode_step=_count(meta["mode_step"]),
            event_file=_event_file(meta["event_file_name"]) if records else None,
            layout=self._layout(records, tuple(shapes)),
            places=self._shared(places.tobytes(), Places(starts, lengths)),
            shapes=shapes,
        )

    def _layout(self, records: tuple[str, ...], shaped: tuple[str, ...]) -> Layout:
        known = self._known.get((records, shaped))
        if known is None:
            known = self._known[records, shaped] = _layout(records, shaped)
        return known

    def _shared(self, key: bytes, places: Places) -> Places:
        if len(self._places) >= _KNOWN_PLACES:
            self._places.clear()
        return self._places.setdefault(key, places)


def _layout(records: tuple[str, ...], shaped: Sequence[str]) -> Layout:
    values: dict[str, int] = {}
    reductions: dict[str, dict[Reduction, int]] = {}
    tensors: dict[str, None] = {}
    for position, record in enumerate(records):
        name, reduction = _split(_name(record))
        if reduction is None:
            values[name] = position  # of several with one name, the last counts
        else:
            reductions.setdefault(name, {})[reduction] = position
        tensors[name] = None
    tensors.update(dict.fromkeys(map(_name, shaped)))
    return Layout(records, values, reductions, tuple(tensors), frozenset(tensors))


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME_CHARS:
        raise ValueError("a tensor has no proper name")
    return value


def _split(record: str) -> tuple[str, Reduction | None]:
    """``smdebug/reductions/abs_mean/conv.weight`` is ``conv.weight`` and ``("mean", True)``."""
    _, prefix, rest = record.partition(_REDUCTIONS)
    reduction, _, name = rest.partition("/")
    if not prefix or not name:
        return record, None
    return name, (reduction.removeprefix("abs_"), reduction.startswith("abs_"))


def _shape(item: Any) -> tuple[tuple[int, ...], str]:
    shape = tuple([_count(size) for size in item["shape"]])
    if len(shape) > MAX_DIMENSIONS:
        raise ValueError("a tensor has an impossible shape")
    original = item.get("originalname")
    return shape, original[:MAX_NAME_CHARS] if isinstance(original, str) else item["tensorname"]


def _event_file(value: Any) -> tuple[str, str]:
    match = _EVENT_FILE.fullmatch(value)
    if match is None:
        raise ValueError("it names an event file outside its store")
    return match[1], match[2]


def _count(value: Any) -> int:
    """A count that stands as a number or as text.

    Raises
    ------
    ValueError
        If it is none.
    """
    number = int(value)
    if not 0 <= number < 2**62:
        raise ValueError("it has a negative or absurd number")
    return number
