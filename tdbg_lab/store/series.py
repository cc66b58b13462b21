"""Samples as series, one a metric and device: kept in memory, so that any part of them is at hand at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.store.events import LiveEvents, SealedEvents

__all__ = ["SampleSeries", "SeriesCache", "cut", "split_series"]

_MAX_ROWS = 20_000_000
"""Rows that are kept: 320 MB."""

_ALWAYS = frozenset({"cpu", "gpu", "memory"})
"""Metrics that nearly every view of samples asks for: read with the first, they are not read anew."""

_Key = tuple[int, str, str]
"""Rank, metric and device."""
_Columns = tuple["NDArray[np.int64]", "NDArray[np.float64]"]
_Place = tuple[int, int]
"""Rank and number of a segment."""


class SampleSeries(NamedTuple):
    """One metric of one device, as one rank sampled it."""

    rank: int
    metric: str
    device: str
    time_ns: NDArray[np.int64]
    """Since the Unix epoch, ascending, shape ``(N,)``."""
    value: NDArray[np.float64]
    """Shape ``(N,)``."""


def cut(series: SampleSeries, ahead_ns: int, first_ns: int, last_ns: int) -> SampleSeries:
    """The part between two moments, both inclusive, of a series whose clock is ahead."""
    time_ns = series.time_ns - ahead_ns
    low, high = np.searchsorted(time_ns, first_ns), np.searchsorted(time_ns, last_ns, "right")
    return series._replace(time_ns=time_ns[low:high], value=series.value[low:high])


class SeriesCache:
    """Series of the metrics that were asked for; segments are decoded once, or while they grow.

    Not thread-safe: the reader holds its lock.
    """

    def __init__(self) -> None:
        self._metrics: set[str] = set()
        self._sealed: dict[_Place, LiveEvents | SealedEvents] = {}
        """Segments that are in `_whole`."""
        self._whole: dict[_Key, _Columns] = {}

    def read(
        self,
        segments: Sequence[tuple[_Place, LiveEvents | SealedEvents]],
        metrics: Collection[str],
        first_ns: int,
        last_ns: int,
        *,
        problem: Callable[[Exception], None],
    ) -> list[SampleSeries]:
        """Samples of these metrics between two moments, both inclusive, by rank, metric and device.

        Parameters
        ----------
        segments
            All there are, in the order they were written.
        problem
            Is told why one of them cannot be read; it is left out, and tried again the next time.

        Raises
        ------
        OSError, ValueError
            One that could be read before cannot be read now.
        """
        sealed = {place: one for place, one in segments if one.is_sealed}
        gone = any(sealed.get(place) is not one for place, one in self._sealed.items())
        if gone:
            self._sealed, self._whole = {}, {}
        missing = set(metrics) - self._metrics
        if missing:
            missing |= _ALWAYS - self._metrics
            late = [self._split(place, one, missing) for place, one in self._sealed.items()]
            self._metrics |= missing
            self._whole = _joined([self._whole, *late])
        decoded = []
        for place, one in sealed.items():
            if place not in self._sealed:
                try:
                    decoded.append(self._split(place, one, self._metrics))
                except (OSError, ValueError) as error:
                    problem(error)
                else:
                    self._sealed[place] = one
        self._whole = _joined([self._whole, *decoded])
        live = [self._split(place, one, self._metrics) for place, one in segments if not one.is_sealed]
        shown = _joined(_between(part, metrics, first_ns, last_ns) for part in (self._whole, *live))
        if sum(len(columns[0]) for columns in self._whole.values()) > _MAX_ROWS:
            self._metrics, self._sealed, self._whole = set(), {}, {}
        return [SampleSeries(*key, *columns) for key, columns in sorted(shown.items())]

    @staticmethod
    def _split(
        place: _Place, segment: LiveEvents | SealedEvents, metrics: Collection[str]
    ) -> dict[_Key, _Columns]:
        return split_series(place[0], segment.coded(("time_ns", "metric", "device", "value")), metrics)


def split_series(rank: int, table: pa.Table, metrics: Collection[str]) -> dict[_Key, _Columns]:
    """The rows of some metrics, by metric and device, in the order of their time."""
    if not table.num_rows:
        return {}
    metric, device = (_codes(table[name]) for name in ("metric", "device"))
    wanted = np.array([name in metrics for name in metric[1]])
    rows = np.flatnonzero(wanted[metric[0]])
    if not len(rows):
        return {}
    code = (metric[0].astype(np.int64) * len(device[1]) + device[0])[rows]
    time_ns = table["time_ns"].to_numpy().astype(np.int64, copy=False)[rows]
    values = table["value"].to_numpy().astype(np.float64, copy=False)[rows]
    order = _by_code(code, time_ns, len(metric[1]) * len(device[1]))
    code, time_ns, values = code[order], time_ns[order], values[order]
    first = np.flatnonzero(np.diff(code, prepend=-1))
    return {
        (rank, metric[1][at // len(device[1])], device[1][at % len(device[1])]): (time_ns[rows], values[rows])
        for at, rows in zip(code[first].tolist(), _slices(first, len(code)), strict=True)
    }


def _by_code(code: NDArray[np.int64], time_ns: NDArray[np.int64], codes: int) -> NDArray[np.int64]:
    """Order of rows by code, then by time; rows come by time unless the clock was set back."""
    if np.all(time_ns[1:] >= time_ns[:-1]):
        small = code.astype(np.uint16) if codes <= 2**16 else code  # numpy sorts 16 bits by their digits
        return np.argsort(small, kind="stable")
    return np.lexsort((time_ns, code))


def _codes(column: pa.ChunkedArray) -> tuple[NDArray[Any], list[str]]:
    """Numbers of the texts, and the texts."""
    if pa.types.is_dictionary(column.type):
        encoded = column.unify_dictionaries().combine_chunks()
    else:
        encoded = pa.chunked_array(column).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):  # of several chunks there is one left, or none
        encoded = encoded.chunk(0)
    return encoded.indices.to_numpy(), [str(one) for one in encoded.dictionary.to_pylist()]


def _slices(first: NDArray[np.int64], end: int) -> list[slice]:
    return [slice(a, b) for a, b in zip(first.tolist(), [*first[1:].tolist(), end], strict=True)]


def _joined(parts: Iterable[dict[_Key, _Columns]]) -> dict[_Key, _Columns]:
    """Parts one after the other; what a clock that was set back has mixed up is put in order."""
    chunks: dict[_Key, list[_Columns]] = {}
    for part in parts:
        for key, columns in part.items():
            chunks.setdefault(key, []).append(columns)
    return {key: own[0] if len(own) == 1 else _in_order(own) for key, own in chunks.items()}


def _in_order(chunks: Sequence[_Columns]) -> _Columns:
    time_ns = np.concatenate([time for time, _ in chunks])
    values = np.concatenate([value for _, value in chunks])
    if np.all(time_ns[1:] >= time_ns[:-1]):
        return time_ns, values
    order = np.argsort(time_ns, kind="stable")
    return time_ns[order], values[order]


def _between(
    part: dict[_Key, _Columns], metrics: Collection[str], first_ns: int, last_ns: int
) -> dict[_Key, _Columns]:
    """Some metrics between two moments; what has nothing there is left out."""
    found: dict[_Key, _Columns] = {}
    for key, (time_ns, values) in part.items():
        if key[1] in metrics:
            low = int(np.searchsorted(time_ns, first_ns, side="left"))
            high = int(np.searchsorted(time_ns, last_ns, side="right"))
            if low < high:
                found[key] = time_ns[low:high], values[low:high]
    return found
