"""The messages of an event file: numbers and histograms, written the plain way, read in both ways."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.exchange.tensorboard.wire import fields, fixed32, fixed64, length_delimited, varint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Histogram", "Item", "file_version", "histogram_event", "read_event", "scalar_event"]

_FILE_VERSION = b"brain.Event:2"
_TENSOR_DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "|u1", 5: "<i2", 6: "|i1", 9: "<i8", 19: "<f2", 14: "<u2"}
_BFLOAT16 = 14
_PACKED = {5: "<f4", 6: "<f8"}
"""Fields of a tensor that hold packed numbers: ``float_val`` and ``double_val``."""
_VARINTS = {7, 10, 11}
"""``int_val``, ``int64_val``, ``bool_val``."""
_MAX_VALUES = 4_000_000


@dataclass(frozen=True, slots=True)
class Histogram:
    """Buckets by value, and exact figures where the file has them."""

    left: NDArray[np.float64]
    right: NDArray[np.float64]
    counts: NDArray[np.float64]
    known: dict[str, float]


@dataclass(frozen=True, slots=True)
class Item:
    """One value of one tag."""

    tag: str
    step: int
    time_ns: int
    value: float | Histogram


# -- writing ----------------------------------------------------------------------------------------


def file_version() -> bytes:
    """The first event of a file."""
    return fixed64(1, 0.0) + length_delimited(3, _FILE_VERSION)


def scalar_event(tag: str, step: int, time_ns: int, value: float) -> bytes:
    """An event with a number."""
    return _event(step, time_ns, length_delimited(1, tag.encode()) + fixed32(2, value))


def histogram_event(tag: str, step: int, time_ns: int, histogram: Histogram) -> bytes:
    """An event with a histogram; `left` is not written, a bucket begins where the one before it ends."""
    known = histogram.known
    message = b"".join(
        [
            fixed64(1, known["min"]),
            fixed64(2, known["max"]),
            fixed64(3, float(histogram.counts.sum())),
            fixed64(4, known["sum"]),
            fixed64(5, known["sum_squares"]),
            length_delimited(6, histogram.right.astype("<f8").tobytes()),
            length_delimited(7, histogram.counts.astype("<f8").tobytes()),
        ]
    )
    return _event(step, time_ns, length_delimited(1, tag.encode()) + length_delimited(5, message))


def _event(step: int, time_ns: int, value: bytes) -> bytes:
    return fixed64(1, time_ns / 1e9) + varint(2, step) + length_delimited(5, length_delimited(1, value))


# -- reading ----------------------------------------------------------------------------------------


def read_event(message: bytes) -> Iterator[Item]:
    """The numbers and histograms of an event; other values are left out.

    Raises
    ------
    ValueError
        It is not an event.
    """
    time_ns = step = 0
    summary = b""
    for number, _, value in fields(message):
        if number == 1 and isinstance(value, bytes) and len(value) == 8:
            seconds = struct.unpack("<d", value)[0]
            time_ns = int(seconds * 1e9) if 0 <= seconds < 1e10 else 0
        elif number == 2 and isinstance(value, int):
            step = value if value < 2**62 else 0
        elif number == 5 and isinstance(value, bytes):
            summary = value
    for number, _, value in fields(summary):
        if number == 1 and isinstance(value, bytes):
            tag, found = _value(value)
            if tag and found is not None:
                yield Item(tag, step, time_ns, found)


def _value(message: bytes) -> tuple[str, float | Histogram | None]:
    """Tag and value of one entry of a summary."""
    tag, plugin = "", ""
    found: float | Histogram | None = None
    tensor = None
    for number, kind, value in fields(message):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            tag = value.decode("utf-8", "replace")
        elif number == 2 and kind == 5:
            found = float(struct.unpack("<f", value)[0])
        elif number == 5:
            found = _histogram(value)
        elif number == 8:
            tensor = value
        elif number == 9:
            plugin = _plugin(value)
    if tensor is not None and found is None:
        found = _from_tensor(tensor, plugin)
    return tag, found


def _plugin(metadata: bytes) -> str:
    """Name of the plugin in a summary's metadata."""
    for number, _, value in fields(metadata):
        if number == 1 and isinstance(value, bytes):
            for inner, _, name in fields(value):
                if inner == 1 and isinstance(name, bytes):
                    return name.decode("utf-8", "replace")
    return ""


def _histogram(message: bytes) -> Histogram | None:
    known: dict[str, float] = {}
    names = {1: "min", 2: "max", 4: "sum", 5: "sum_squares"}
    lists: dict[int, list[bytes]] = {6: [], 7: []}
    for number, _, value in fields(message):
        if not isinstance(value, bytes):
            continue
        if number in names and len(value) == 8:
            known[names[number]] = float(struct.unpack("<d", value)[0])
        elif number in lists and len(value) % 8 == 0:
            lists[number].append(value)
    limits, counts = (np.frombuffer(b"".join(lists[n]), "<f8").astype(np.float64) for n in (6, 7))
    if len(limits) != len(counts) or not len(limits) or (np.diff(limits) < 0).any():
        return None
    known = {name: value for name, value in known.items() if np.isfinite(value)}
    first = min(known.get("min", limits[0]), limits[0])
    return Histogram(np.r_[first, limits[:-1]], limits, counts, known)


def _from_tensor(message: bytes, plugin: str) -> float | Histogram | None:
    values = _tensor(message)
    if values is None:
        return None
    if plugin == "histograms" or (values.ndim == 2 and values.shape[1] == 3 and plugin != "scalars"):
        table = values.reshape(-1, 3) if values.size % 3 == 0 else np.zeros((0, 3))
        if not len(table):
            return None
        table = table[np.argsort(table[:, 0], kind="stable")]
        return Histogram(table[:, 0], table[:, 1], table[:, 2], {})
    return float(values.reshape(-1)[0]) if values.size == 1 else None


def _tensor(message: bytes) -> NDArray[np.float64] | None:
    """A tensor of numbers; None for another type or when it does not fit its shape."""
    dtype, shape, content, loose = _tensor_fields(message)
    wanted = math.prod(map(float, shape))  # 1 for no dimension, infinite for many large ones
    if dtype not in _TENSOR_DTYPES or not 0 < wanted <= _MAX_VALUES:
        return None
    size = int(wanted)
    if content:
        flat = _whole(content, _TENSOR_DTYPES[dtype])
        flat = (flat.astype(np.uint32) << 16).view(np.float32) if dtype == _BFLOAT16 else flat
    elif loose:
        flat = np.array(loose if len(loose) == size else loose[:1] * size)  # one value may stand for all
    else:
        flat = np.zeros(size)  # all default values are left out of the message
    return flat.astype(np.float64).reshape(shape) if flat.size == size else None


def _tensor_fields(message: bytes) -> tuple[int, list[int], bytes, list[float]]:
    """Number of the type, shape, values as bytes, and values one by one, of which a message has either."""
    dtype, shape, content, loose = 0, [], b"", []
    for number, _, value in fields(message):
        if number == 1 and isinstance(value, int):
            dtype = value
        elif number == 2 and isinstance(value, bytes):
            shape = [_size(dim) for inner, _, dim in fields(value) if inner == 2 and isinstance(dim, bytes)]
        elif number == 4 and isinstance(value, bytes):
            content = value
        elif number in _PACKED and isinstance(value, bytes):
            loose += _whole(value, _PACKED[number]).tolist()
        elif number in _VARINTS and isinstance(value, int):
            loose.append(float(value - (1 << 64) if value >= 1 << 63 else value))
    return dtype, shape, content, loose


def _whole(content: bytes, dtype: str) -> NDArray[Any]:
    """The numbers that are there as a whole."""
    return np.frombuffer(content, dtype, count=len(content) // np.dtype(dtype).itemsize)


def _size(dimension: bytes) -> int:
    return next((v for n, _, v in fields(dimension) if n == 1 and isinstance(v, int)), 0)
