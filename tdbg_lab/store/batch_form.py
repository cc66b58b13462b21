"""The form of the batches that one tuple of keys makes: encoded once, then filled step by step.

An Arrow message is a small table of contents, where each buffer lies and how long it is, and the buffers
behind it. From step to step of the same tensors only the numbers change, and how long the histograms are.
So the message that pyarrow made of the first step is kept, and of the following ones only that is written
over: no arrays are built, and each number is copied once, converted on its way.
"""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tdbg_lab.stats.bins import BIN_SHIFT
from tdbg_lab.store.ipc import field_position
from tdbg_lab.store.schema import COUNTS, FLOATS, checked_offsets, narrow_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tdbg_lab.records import StatsRows
    from tdbg_lab.store.number_rows import NumberRows

__all__ = ["BatchForm"]

_PREFIX_BYTES = 8
_SPARE = 4
"""One in so many bytes is spare, for histograms that grow."""
_LISTS = ("hist_bins", "hist_counts", "channel_zero_frac", "channel_mean")
_BODY_LENGTH, _NODES, _BUFFERS = 3, 1, 2
"""Places in the tables of a message, and of the record batch in it (Message.fbs of Arrow)."""


class BatchForm:
    """Writes messages of `StatsRows` that have the same keys and mode as the batch it was made from.

    Parameters
    ----------
    batch
        A batch of the schema `tdbg_lab.store.schema.STATS`, of one row at least and without reasons.

    Raises
    ------
    ValueError
        If pyarrow lays messages out in another way than it did.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.rows = batch.num_rows
        message = np.frombuffer(batch.serialize(), np.uint8)
        self._places = _Places(batch.schema)
        self._body = _PREFIX_BYTES + struct.unpack_from("<Ii", message.data)[1]
        self._space = np.concatenate([message, np.zeros(len(message) // _SPARE, np.uint8)])
        contents = message[_PREFIX_BYTES : self._body].tobytes()
        self._length_at, self._nodes_at, self._buffers_at = _positions(contents)
        buffers = self._table(self._buffers_at, self._places.n_buffers).copy()
        self._sizes: NDArray[np.int64] = buffers[:, 1].copy()
        if not np.array_equal(_starts(self._sizes)[:-1], buffers[:, 0]):
            raise ValueError("the buffers do not follow each other")
        self._lengths = (-1, -1)
        """How many numbers the lists of histograms and of channels hold now."""
        self._ordinary = False
        """Whether its rows are ordinary numbers now: of others like them, few columns differ."""
        self._view()

    @property
    def nbytes(self) -> int:
        """Bytes that it keeps."""
        return len(self._space)

    def _table(self, at: int, rows: int) -> NDArray[np.int64]:
        start = _PREFIX_BYTES + at
        return self._space[start : start + 16 * rows].view(np.int64).reshape(rows, 2)

    def _view(self) -> None:
        """Look at the space anew: what stands before the histograms always has the same place."""
        places, n = self._places, self.rows
        self._nodes = self._table(self._nodes_at, places.n_nodes)
        self._buffers = self._table(self._buffers_at, places.n_buffers)
        self._length = self._space[_PREFIX_BYTES + self._length_at :][:8].view(np.int64)
        self._step, self._time_ns = (self._numbers(name, np.int64, n) for name in ("step", "time_ns"))
        self._micro = self._numbers("micro", np.int32, n)
        self._columns = [
            *((name, self._numbers(name, np.int64, n)) for name in COUNTS),
            *((name, self._numbers(name, np.float64, n)) for name in FLOATS),
        ]

    def _numbers(self, name: str, dtype: Any, n: int) -> NDArray[Any]:
        return self._at(self._places.values[name], dtype, n)

    def _at(self, buffer: int, dtype: Any, n: int) -> NDArray[Any]:
        """A buffer of `n` numbers where the table of contents says that it lies."""
        start = self._body + int(self._buffers[buffer, 0])
        return self._space[start : start + n * np.dtype(dtype).itemsize].view(dtype)

    def fill(self, rows: StatsRows, seq: int) -> memoryview:
        """The message of `rows`; good until the next call.

        Raises
        ------
        ValueError
            If keys and block differ in length, or lists in a block do.
        """
        self._ordinary = False
        block, n = rows.block, self.rows
        if len(block) != n:
            raise ValueError(f"{n} keys but {len(block)} rows of statistics")
        bins, channels = len(block.hist_bins), len(block.channel_mean)
        hist = checked_offsets(block.hist_offsets, bins, n)
        channel = checked_offsets(block.channel_offsets, channels, n)
        if (bins, channels) != self._lengths:
            self._lay_out(bins, channels)
        self._step[:], self._time_ns[:], self._micro[:] = rows.step, rows.time_ns, rows.micro
        for name, column in self._columns:
            column[:] = getattr(block, name)
        found = (
            (hist, block.hist_bins),
            (hist, narrow_counts(block)),
            (channel, block.channel_zero_frac),
            (channel, block.channel_mean),
        )
        for (offsets, numbers), (starts, values) in zip(self._lists, found, strict=True):
            offsets[:], numbers[:] = starts, values
        self._seq[:] = seq
        return self._message

    def fill_numbers(self, numbers: NumberRows, seq: int) -> memoryview:
        """The message of ordinary numbers; good until the next call.

        Raises
        ------
        ValueError
            If keys and numbers differ in length.
        """
        if not self._ordinary:
            self.fill(numbers.rows(), seq)
            self._ordinary = True
            return self._message
        values, n = numbers.values, self.rows
        if not len(values) == len(numbers.steps) == len(numbers.time_ns) == n:
            raise ValueError(f"{n} keys but {len(values)} numbers")
        bits = array("I", array("f", values).tobytes())
        exact, magnitudes = array("d", values), array("d", map(abs, values))
        found = {
            "step": array("q", numbers.steps),
            "time_ns": array("q", numbers.time_ns),
            "micro": array("i", [numbers.micro]) * n,
            **dict.fromkeys(("min", "max", "mean"), exact),
            **dict.fromkeys(("l1", "l2"), magnitudes),
            "hist_bins": array("H", [one >> BIN_SHIFT for one in bits]),
            "seq": array("q", [seq]) * n,
        }
        for name, column in found.items():
            start, size = self._starts[name], n * column.itemsize
            self._message[start : start + size] = column.tobytes()
        return self._message

    def _lay_out(self, bins: int, channels: int) -> None:
        """Note in the table of contents how long the lists are and where all lies, and look there."""
        places, n = self._places, self.rows
        lengths = (bins, bins, channels, channels)
        for name, count in zip(_LISTS, lengths, strict=True):
            self._sizes[places.values[name]] = count * places.types[name].itemsize
            self._nodes[places.nodes[name], 0] = count
        starts = _starts(self._sizes)
        total = self._body + int(starts[-1])
        if total > len(self._space):
            self._space = np.concatenate([self._space, np.zeros(total, np.uint8)])
            self._view()
        self._buffers[:, 0], self._buffers[:, 1] = starts[:-1], self._sizes
        self._length[0] = starts[-1]
        first = self._body + int(starts[places.offsets[_LISTS[0]]])
        self._space[first:total] = 0  # the paddings, and the column of reasons behind the lists
        self._lists = [
            (
                self._at(places.offsets[name], np.int32, n + 1),
                self._at(places.values[name], places.types[name], count),
            )
            for name, count in zip(_LISTS, lengths, strict=True)
        ]
        self._seq = self._numbers("seq", np.int64, n)
        self._message = self._space[:total].data
        self._starts = {name: self._body + int(starts[at]) for name, at in places.values.items()}
        self._lengths = bins, channels


class _Places:
    """Which nodes and buffers of a message belong to which column."""

    def __init__(self, schema: pa.Schema) -> None:
        self.values: dict[str, int] = {}
        """Buffer of the numbers of a column, or of the numbers in its lists."""
        self.offsets: dict[str, int] = {}
        """Buffer that says where its lists begin."""
        self.nodes: dict[str, int] = {}
        """Node that says how many numbers there are, in its lists where it has lists."""
        self.types: dict[str, np.dtype[Any]] = {}
        self.n_nodes = self.n_buffers = 0
        for column in schema:
            self._add(column.name, column.type)

    def _add(self, name: str, kind: pa.DataType) -> None:
        self.nodes[name] = self.n_nodes
        self.n_nodes += 1
        if pa.types.is_list(kind):
            self.offsets[name] = self.n_buffers + 1
            self.n_buffers += 2
            self._add(name, kind.value_type)
            return
        numbers = not pa.types.is_string(kind)
        if numbers:
            self.values[name], self.types[name] = self.n_buffers + 1, np.dtype(kind.to_pandas_dtype())
        self.n_buffers += 2 if numbers else 3


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where buffers of these sizes begin, each at a multiple of 8, and where the last one ends."""
    starts: NDArray[np.int64] = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes + 7 & ~7, out=starts[1:])
    return starts


def _positions(contents: bytes) -> Sequence[int]:
    """Where the body length, the nodes and the buffers stand in the table of contents of a record batch."""
    root = struct.unpack_from("<I", contents, 0)[0]
    length_at, header_at = field_position(contents, root, _BODY_LENGTH), field_position(contents, root, 2)
    if length_at is None or header_at is None:
        raise ValueError("is no message with a body")
    batch = header_at + struct.unpack_from("<I", contents, header_at)[0]
    found = [length_at]
    for slot in (_NODES, _BUFFERS):
        at = field_position(contents, batch, slot)
        if at is None:
            raise ValueError("is no record batch")
        found.append(at + struct.unpack_from("<I", contents, at)[0] + 4)  # behind its length
    return found
