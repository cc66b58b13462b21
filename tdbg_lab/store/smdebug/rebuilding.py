"""The content of an index file that is missing, from the event file it told of.

An event file says of each of its tensors what it is called, and at which mode and mode step it was
saved. Shapes that were saved without values stood in the index alone.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Any

from tdbg_lab.store.layout import open_regular, read_at
from tdbg_lab.store.smdebug.bounds import MAX_PAYLOAD, MAX_RECORD_BYTES
from tdbg_lab.store.smdebug.index_file import MODES
from tdbg_lab.store.smdebug.record import FOOTER, HEADER, Label, label_of, marks_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["index_of"]

_HEAD_BYTES = 1024
"""Enough of a record for its name, mostly."""
_MAX_MARK_BYTES = 4096


def index_of(path: Path) -> dict[str, Any]:
    """What the index of an event file says, as `Layouts.take` takes it.

    Values are not read: of each record its beginning, of the first one its end, too.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no event file of smdebug, or cut off.
    """
    payload: list[dict[str, Any]] = []
    marks: dict[str, str] = {}
    count = 0
    descriptor = open_regular(path)
    try:
        start, size = 0, os.fstat(descriptor).st_size
        while start < size:
            length = _length(descriptor, start, size)
            label = _label(descriptor, start, length)
            if label is not None:
                marks = marks or _marks(descriptor, start, label)
                payload.append({"tensorname": label.name, "start_idx": start, "length": length})
            start, count = start + length, count + 1
            if count > MAX_PAYLOAD:
                raise ValueError(f"it has more than {MAX_PAYLOAD} records")
    finally:
        os.close(descriptor)
    return {
        "meta": {
            "mode": _mode(marks.get("mode", "")),
            "mode_step": marks.get("mode_step", ""),
            "event_file_name": f"events/{path.parent.name}/{path.name}",
        },
        "tensor_payload": payload,
    }


def _length(descriptor: int, start: int, size: int) -> int:
    """Bytes of the record that begins at `start` of a file of `size` bytes."""
    head = read_at(descriptor, 8, start)
    length = HEADER + struct.unpack("<Q", head)[0] + FOOTER if len(head) == 8 else size
    if not 0 < length <= min(size - start, MAX_RECORD_BYTES - 1):
        raise ValueError("it is cut off")
    return length


def _label(descriptor: int, start: int, length: int) -> Label | None:
    try:
        return label_of(memoryview(read_at(descriptor, min(_HEAD_BYTES, length), start)), length)
    except ValueError:  # a long name takes more
        return label_of(memoryview(read_at(descriptor, length, start)), length)


def _marks(descriptor: int, start: int, label: Label) -> dict[str, str]:
    behind = read_at(descriptor, min(label.end - label.start, _MAX_MARK_BYTES), start + label.start)
    return marks_of(memoryview(behind))


def _mode(number: str) -> str:
    if number not in {"1", "2", "3", "4"}:
        raise ValueError("it does not say in which mode it was saved")
    return MODES[int(number) - 1]
