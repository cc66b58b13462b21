"""One tensor out of an event file: a TFRecord that holds a protobuf ``Event``.

Written out by hand, because the two messages are small and a protobuf library would be most of the
time. Nothing is trusted: every length is checked against the bytes that are there.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tdbg_lab.store.smdebug.bounds import MAX_DIMENSIONS, MAX_STRINGS, MAX_TEXT_ROOM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["FOOTER", "HEADER", "Content", "Decoder", "Label", "label_of", "marks_of", "wall_time_ns"]

HEADER, FOOTER = 12, 4
"""Bytes around an event: its length with a checksum, and a checksum."""
STRING = 7
DTYPES = {
    1: "<f4",
    2: "<f8",
    3: "<i4",
    4: "|u1",
    5: "<i2",
    6: "|i1",
    8: "<c8",
    9: "<i8",
    10: "|b1",
    11: "|i1",
    12: "|u1",
    13: "<i4",
    14: "<u2",
    15: "<i2",
    16: "<u2",
    17: "<u2",
    18: "<c16",
    19: "<f2",
    22: "<u4",
    23: "<u8",
}
"""Codes of TensorFlow's ``DataType`` and what numpy calls them; quantized ones are plain integers."""
BFLOAT16 = 14
_TEMPLATES = 65_536
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class Content:
    """Where the values of a tensor stand in its record."""

    dtype: int
    """TensorFlow's code; `STRING` for text, which has no code in the file."""
    shape: tuple[int, ...]
    start: int
    """Offset in the record, bytes."""
    size: int
    strings: tuple[bytes, ...] = ()

    @property
    def dtype_name(self) -> str:
        """Name as in `tdbg_lab.records.TensorKey`."""
        if self.dtype == STRING:
            return "str"
        return "bfloat16" if self.dtype == BFLOAT16 else np.dtype(DTYPES[self.dtype]).name


class Decoder:
    """Finds values in records.

    Records of a tensor mostly differ in nothing but time, step and values: what was found in one is
    tried on the next of the same length.
    """

    def __init__(self) -> None:
        self._templates: dict[tuple[str, int], tuple[int, bytes, Content]] = {}

    def locate(self, record: memoryview, name: str, length: int | None = None) -> Content:
        """The content of a record that must hold tensor `name`.

        Parameters
        ----------
        length
            Of the whole record, bytes, when `record` is only its beginning.

        Raises
        ------
        ValueError
            If it does not, is broken, or the beginning is too short to tell.
        """
        length = len(record) if length is None else length
        known = self._templates.get((name, length))
        if known is not None:
            place, head, content = known
            if record[:8] == head[:8] and record[place : content.start] == head[8:]:
                return content
        try:
            return self._parse(record, name, length)
        except IndexError as error:
            raise ValueError("a record is cut off") from error

    def array(self, record: memoryview, name: str, *, copy: bool = True) -> NDArray[Any]:
        """The value in a record, in the type it was saved in; bfloat16 comes as float32.

        Raises
        ------
        ValueError
            If the record is broken.
        """
        content = self.locate(record, name)
        if content.dtype == STRING:
            return _strings(content)
        data = record[content.start : content.start + content.size]
        values = np.frombuffer(data, DTYPES[content.dtype])
        if content.dtype == BFLOAT16:
            values = (values.astype(np.uint32) << 16).view(np.float32)
        elif copy:
            values = values.copy()
        return values.reshape(content.shape)

    def block(self, rows: NDArray[np.uint8], start: int, length: int, name: str) -> list[NDArray[Any]] | None:
        """The values in the records of `length` bytes that begin at `start` of each row, as `array`.

        None when they differ in more than their values.

        Raises
        ------
        ValueError
            If the first is broken.
        """
        records = rows[:, start : start + length]
        content = self.locate(memoryview(records[0].tobytes()), name)
        known = self._templates.get((name, length))
        if known is None or content.dtype == BFLOAT16:
            return None
        place, head, content = known
        sure = np.frombuffer(head, np.uint8)
        if (records[:, :8] != sure[:8]).any() or (records[:, place : content.start] != sure[8:]).any():
            return None
        places = range(start + content.start, rows.nbytes, rows.shape[1])
        dtype = np.dtype(DTYPES[content.dtype])
        return [np.ndarray(content.shape, dtype, rows, place).copy() for place in places]

    def _parse(self, record: memoryview, name: str, length: int) -> Content:
        if len(record) < HEADER or _length(record) != length - HEADER - FOOTER:
            raise ValueError("a record is cut off")
        value = _find(record, HEADER, length - FOOTER, (5, 1))
        if value is None:
            raise ValueError("a record holds no tensor")
        tag, tensor, at = "", None, value[0]
        for field, start, end in _fields(record, *value):
            if field == 1:
                tag, at = _text(record[start:end]), start
            elif field == 8:
                tensor = (start, end)
            if tag and tensor is not None:
                break  # as smdebug writes it; what follows tells mode and mode step
        if tag != name or tensor is None:
            raise ValueError(f"a record holds {tag[:80]!r} where its index says {name[:80]!r}")
        content = _content(record, *tensor)
        if content.dtype != STRING and content.size:
            head = bytes(record[:8]) + bytes(record[at : content.start])
            if len(self._templates) >= _TEMPLATES:
                self._templates.clear()
            self._templates[name, length] = (at, head, content)
        return content


class Label(NamedTuple):
    """Whose values a record holds."""

    name: str
    start: int
    """Offset of what stands behind the values, bytes: mode and mode step."""
    end: int


def label_of(record: memoryview, length: int) -> Label | None:
    """The label of a record, of which `record` may be only the beginning; None when it holds no tensor.

    Raises
    ------
    ValueError
        If it is broken, or the beginning is too short to tell.
    """
    try:
        value = _find(record, HEADER, length - FOOTER, (5, 1))
        if value is None:
            return None
        name, behind = "", 0
        for field, start, end in _fields(record, *value):
            if field == 1:
                name = _text(record[start:end])
            elif field == 8:
                behind = end
            if name and behind:
                return Label(name, behind, value[1])
    except IndexError as error:
        raise ValueError("a record is cut off") from error
    return None


def marks_of(behind: memoryview) -> dict[str, str]:
    """What stands behind the values of a tensor: ``mode`` and ``mode_step``.

    Raises
    ------
    ValueError
        If it is broken.
    """
    found: dict[str, str] = {}
    for field, start, end in _fields(behind, 0, len(behind)):
        for part, first, last in _fields(behind, start, end) if field == 9 else ():
            if part == 1:
                texts = {key: _text(behind[at:to]) for key, at, to in _fields(behind, first, last)}
                found[texts.get(1, "")] = texts.get(2, "")
    return found


def wall_time_ns(head: bytes) -> int:
    """When a record was written, from its first 21 bytes, ns since the epoch; 0 when it does not say."""
    if len(head) < HEADER + 9 or head[HEADER] != 0x09:  # field 1, a double
        return 0
    (seconds,) = struct.unpack_from("<d", head, HEADER + 1)
    return int(seconds * 1e9) if 0 < seconds < 2**33 else 0


def _length(record: memoryview) -> int:
    (length,) = struct.unpack_from("<Q", record)
    return int(length)


def _find(data: memoryview, start: int, end: int, path: tuple[int, ...]) -> tuple[int, int] | None:
    """Bounds of the first message at a path of field numbers."""
    for field in path:
        found = next(((s, e) for number, s, e in _fields(data, start, end) if number == field), None)
        if found is None:
            return None
        start, end = found
    return start, end


def _content(data: memoryview, start: int, end: int) -> Content:
    dtype, place, strings = 0, (end, end), []
    shape: tuple[int, ...] = ()
    for field, first, last in _fields(data, start, end):
        if field == 1:
            dtype = _varint(data, first, last)[0]
        elif field == 2:
            shape = _shape(data, first, last)
        elif field == 4:
            place = (first, last)
            if dtype:
                break  # the values come last
        elif field == 8:
            strings.append(bytes(data[first:last]))
    if strings or dtype in {0, STRING}:
        if math.prod(shape) != len(strings) or len(strings) > MAX_STRINGS:
            raise ValueError(f"{len(strings)} strings in a tensor of shape {list(shape)}")
        return Content(STRING, shape, end, 0, tuple(strings))
    return _numbers(dtype, shape, *place)


def _numbers(dtype: int, shape: tuple[int, ...], start: int, end: int) -> Content:
    """The content of a tensor of numbers, checked."""
    if dtype not in DTYPES:
        raise ValueError(f"a tensor is of type {dtype}, which is not known")
    if math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize != end - start:
        raise ValueError(f"a tensor of shape {list(shape)} has {end - start} bytes")
    return Content(dtype, shape, start, end - start)


def _shape(data: memoryview, start: int, end: int) -> tuple[int, ...]:
    sizes = []
    for field, first, last in _fields(data, start, end):
        if field == 2:
            size = 0  # a dimension of 0 is not written out
            for part, at, stop in _fields(data, first, last):
                if part == 1:
                    size = _varint(data, at, stop)[0]
            sizes.append(size)
    if len(sizes) > MAX_DIMENSIONS or max(sizes, default=0) >= 2**62:
        raise ValueError("a tensor has an impossible shape")
    return tuple(sizes)


def _fields(data: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number of each field and where its value stands, first and behind the last byte."""
    while start < end:
        key, start = _varint(data, start, end)
        wire = key & 7
        if wire == _BYTES:
            size, start = _varint(data, start, end)
        elif wire == _VARINT:
            size = _varint(data, start, end)[1] - start
        elif wire == _FIXED64:
            size = 8
        elif wire == _FIXED32:
            size = 4
        else:
            raise ValueError("a record is no event")
        if start + size > end:
            raise ValueError("a record is cut off")
        yield key >> 3, start, start + size
        start += size


def _varint(data: memoryview, start: int, end: int) -> tuple[int, int]:
    value, shift = 0, 0
    while start < end and shift < 70:
        byte = data[start]
        start += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, start
        shift += 7
    raise ValueError("a record is cut off")


def _text(data: memoryview) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("a tensor name is no text") from error


def _strings(content: Content) -> NDArray[Any]:
    texts = [text.decode("utf-8", "replace") for text in content.strings]
    width = max(map(len, texts), default=0)  # numpy gives every text the room of the longest
    dtype = np.str_ if len(texts) * width <= MAX_TEXT_ROOM else np.object_
    return np.array(texts, dtype=dtype).reshape(content.shape)
