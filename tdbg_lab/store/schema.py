"""Arrow schemas of the three streams, and the encoding of rows into record batches."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Mode
from tdbg_lab.store.arrays import list_array, number_array, text_array
from tdbg_lab.store.limits import FORMAT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tdbg_lab.records import StatsBlock, StatsRows, TensorKey

_INT64, _INT32, _UINT16, _UINT32 = pa.int64(), pa.int32(), pa.uint16(), pa.uint32()
_FLOAT64, _FLOAT32 = pa.float64(), pa.float32()

MODES = tuple(Mode)
MODE_CODE = {str(mode): code for code, mode in enumerate(MODES)}

COUNTS = ("count", "nan_count", "pos_inf_count", "neg_inf_count", "zero_count")
FLOATS = ("min", "max", "mean", "std", "l1", "l2")
SCALARS = COUNTS + FLOATS
"""Columns with one number a row."""

STATS = pa.schema(
    [
        ("step", pa.int64()),
        ("micro", pa.int32()),
        ("mode", pa.utf8()),
        ("time_ns", pa.int64()),
        ("tensor", pa.utf8()),
        ("kind", pa.utf8()),
        ("module", pa.utf8()),
        ("dtype", pa.utf8()),
        ("shape", pa.list_(pa.int64())),
        ("collections", pa.list_(pa.utf8())),
        *((name, pa.int64()) for name in COUNTS),
        *((name, pa.float64()) for name in FLOATS),
        ("hist_bins", pa.list_(pa.uint16())),
        ("hist_counts", pa.list_(pa.uint32())),
        ("channel_zero_frac", pa.list_(pa.float32())),
        ("channel_mean", pa.list_(pa.float32())),
        ("reason", pa.utf8()),
        ("seq", pa.int64()),
    ]
)
SPANS = pa.schema(
    [
        ("name", pa.utf8()),
        ("phase", pa.utf8()),
        ("start_ns", pa.int64()),
        ("duration_ns", pa.int64()),
        ("step", pa.int64()),
        ("device", pa.utf8()),
        ("thread", pa.int64()),
        ("seq", pa.int64()),
    ]
)
SYSTEM = pa.schema(
    [
        ("time_ns", pa.int64()),
        ("metric", pa.utf8()),
        ("device", pa.utf8()),
        ("value", pa.float64()),
        ("seq", pa.int64()),
    ]
)
SCHEMAS: Mapping[str, pa.Schema] = {"stats": STATS, "spans": SPANS, "system": SYSTEM}

METADATA_KEY = b"tdbg"
"""Schema metadata of a live segment and of a sealed one: a JSON object, see `segment_metadata`."""

_MOST = 2**32 - 1
_CACHED_KEYS = 32


def segment_metadata(stream: str, rank: int, number: int, run_id: str, created_ns: int) -> dict[bytes, bytes]:
    """Schema metadata of a new segment; its ``uid`` is its name for good, numbers may be used again."""
    value = {
        "format": FORMAT,
        "run": run_id,
        "stream": stream,
        "rank": rank,
        "segment": number,
        "uid": uuid.uuid4().hex,
        "created_ns": created_ns,
    }
    return {METADATA_KEY: json.dumps(value).encode()}


class StatsEncoder:
    """Turns `StatsRows` into record batches; keeps the encoded key columns of recent key tuples."""

    def __init__(self) -> None:
        self._keys: dict[int, tuple[tuple[TensorKey, ...], list[pa.Array]]] = {}
        self._constants: dict[tuple[str, int], pa.Array] = {}

    def encode(self, rows: StatsRows, seq: int, schema: pa.Schema) -> pa.RecordBatch:
        """One record batch with a row per tensor.

        Raises
        ------
        ValueError
            If keys and block differ in length, or lists in a block do.
        """
        block, n = rows.block, len(rows.keys)
        if len(block) != n:
            raise ValueError(f"{n} keys but {len(block)} rows of statistics")
        step, time_ns, places, *scalars = _fixed(rows, seq)
        arrays = [
            step,
            number_array(np.full(n, rows.micro, np.int32), _INT32),
            self._constant(str(rows.mode), n),
            time_ns,
            *self._key_columns(rows.keys),
            *scalars,
            *_lists(block, n),
            text_array(block.reasons) if block.reasons else self._constant("", n),
            places,
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def knows(self, keys: tuple[TensorKey, ...]) -> bool:
        """Whether the columns of these keys, this very tuple, are kept."""
        return id(keys) in self._keys

    def _key_columns(self, keys: tuple[TensorKey, ...]) -> list[pa.Array]:
        cached = self._keys.get(id(keys))
        if cached is not None:  # the tuple is kept alive here, so its id is not used again
            return cached[1]
        shapes, collections = [key.shape for key in keys], [key.collections for key in keys]
        arrays = [
            text_array([key.name for key in keys]),
            text_array([str(key.kind) for key in keys]),
            text_array([key.module for key in keys]),
            text_array([key.dtype for key in keys]),
            list_array(
                shapes, number_array(np.array([one for shape in shapes for one in shape], np.int64), _INT64)
            ),
            list_array(collections, text_array([one for names in collections for one in names])),
        ]
        while len(self._keys) >= _CACHED_KEYS:
            self._keys.pop(next(iter(self._keys)))
        self._keys[id(keys)] = (keys, arrays)
        return arrays

    def _constant(self, text: str, n: int) -> pa.Array:
        """`text` `n` times; nulls for ``""``."""
        array = self._constants.get((text, n))
        if array is None:
            if len(self._constants) > 4 * _CACHED_KEYS:
                self._constants.clear()
            array = text_array([text] * n) if text else pa.nulls(n, pa.utf8())
            self._constants[text, n] = array
        return array


def _fixed(rows: StatsRows, seq: int) -> list[pa.Array]:
    """The columns of 64-bit numbers, slices of one buffer: step, time, seq, `COUNTS` and `FLOATS`."""
    block, n = rows.block, len(rows.keys)
    table = np.empty((3 + len(SCALARS), n), np.int64)
    table[0], table[1], table[2] = rows.step, rows.time_ns, seq
    row = 3
    for name in COUNTS:
        table[row] = getattr(block, name)
        row += 1
    floats = table.view(np.float64)
    for name in FLOATS:
        floats[row] = getattr(block, name)
        row += 1
    shared = [None, pa.py_buffer(table)]
    make, first_float = pa.Array.from_buffers, 3 + len(COUNTS)
    return [make(_INT64 if i < first_float else _FLOAT64, n, shared, 0, i * n) for i in range(row)]


def _lists(block: StatsBlock, n: int) -> list[pa.Array]:
    hist = checked_offsets(block.hist_offsets, len(block.hist_bins), n)
    channel = checked_offsets(block.channel_offsets, len(block.channel_mean), n)
    columns = (
        (hist, _UINT16, np.asarray(block.hist_bins, np.uint16)),
        (hist, _UINT32, narrow_counts(block).astype(np.uint32)),
        (channel, _FLOAT32, np.asarray(block.channel_zero_frac, np.float32)),
        (channel, _FLOAT32, np.asarray(block.channel_mean, np.float32)),
    )
    return [
        pa.Array.from_buffers(
            pa.list_(kind), n, [None, pa.py_buffer(offsets)], children=[number_array(values, kind)]
        )
        for offsets, kind, values in columns
    ]


def narrow_counts(block: StatsBlock) -> NDArray[np.int64]:
    """Counts of the histograms; one beyond 2**32 - 1, of a tensor that large, is cut to that."""
    counts = np.asarray(block.hist_counts)
    if len(block.count) and block.count.max() > _MOST:
        counts = np.minimum(counts, _MOST)
    return counts


def checked_offsets(offsets: NDArray[np.int64], n_values: int, n: int) -> NDArray[np.int32]:
    """Offsets of `n` lists that hold `n_values` together.

    Raises
    ------
    ValueError
        If they do not.
    """
    found = np.ascontiguousarray(offsets, np.int32)
    if len(found) != n + 1 or found[0] != 0 or found[-1] != n_values or (found[1:] < found[:-1]).any():
        raise ValueError("offsets do not fit the values")
    return found


def mode_code(mode: Mode | str) -> int:
    """Code of a mode.

    Raises
    ------
    ConfigError
        If there is no such mode.
    """
    code = MODE_CODE.get(str(mode))
    if code is None:
        raise ConfigError(f"There is no mode {str(mode)[:80]!r}; choose from {', '.join(MODES)}.")
    return code
