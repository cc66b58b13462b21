"""From spans and samples on disk to what rules see of them."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tdbg_lab.rules.activity import Activity
from tdbg_lab.store.layout import list_ranks
from tdbg_lab.store.source import is_foreign, source_of
from tdbg_lab.store.tail import tail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pyarrow as pa
    from pandas import DataFrame

__all__ = ["ActivityFeed"]

log = logging.getLogger(__name__)

LAG_NS: Final = 1_000_000_000
"""Phases are written in batches: how far behind the checked step `Activity` stays while a run goes on."""
TICK_NS: Final = 1_000_000_000
_BACK_NS: Final = 5_000_000_000
"""Batches of one stream are in order of time but for less than this, unless the clock was set back."""
_FOREVER: Final = 2**62
_MOMENT_NS: Final = 20_000_000
"""Samples of another library that lie so near to each other are of one moment."""


class ActivityFeed:
    """Reads what training and machines did up to a moment; never more than a batch of each stream ahead.

    So a check after the fact sees at each step what a live one saw, but for phases that were written
    late.

    Parameters
    ----------
    run_path
        Run directory.
    """

    def __init__(self, run_path: Path) -> None:
        self.activity = Activity(run_path)
        self._path = run_path
        self._streams: dict[tuple[int, str], _Stream] = {}
        self._steps: dict[int, _Steady] = {}
        """Times of the steps of each rank."""
        self._moved_ns = 0
        self._refused = False
        self.is_foreign = is_foreign(run_path)
        """Whether another library wrote it: all of it is read at the end."""
        self._is_read = False

    def move_to(self, written_ns: Mapping[int, int]) -> None:
        """Go on to a step that ranks wrote at these times, at most once a second of training."""
        time_ns = max(self._steps.setdefault(rank, _Steady()).of(at) for rank, at in written_ns.items())
        if time_ns - self._moved_ns >= TICK_NS:
            self._moved_ns = time_ns
            self._read(time_ns - LAG_NS)

    def finish(self) -> bool:
        """Read all there is; True when there was anything new."""
        return self._read_foreign() if self.is_foreign else self._read(_FOREVER)

    def _read_foreign(self) -> bool:
        """Read what another library wrote, once."""
        if self._is_read:
            return False
        self._is_read = True
        reader = source_of(self._path).reader()
        reader.refresh()
        spans, samples = (reader.events(stream, None, None) for stream in ("spans", "system"))
        for rank in spans["rank"].unique().tolist():
            own = spans[spans["rank"] == rank]
            columns = [own[name].to_numpy(dtype=np.int64) for name in ("start_ns", "duration_ns", "step")]
            self.activity.spans.put(rank, own["phase"].astype(str).tolist(), *columns)
        for rank in samples["rank"].unique().tolist():
            self._put_foreign_samples(rank, samples[samples["rank"] == rank])
        ends = [*(spans["start_ns"] + spans["duration_ns"])[-1:], *samples["time_ns"][-1:]]
        self.activity.move_to(int(max(ends, default=0)))
        return bool(ends)

    def _put_foreign_samples(self, rank: int, own: DataFrame) -> None:
        time_ns = own["time_ns"].to_numpy(dtype=np.int64)
        metrics, devices = (own[name].astype(str).to_numpy() for name in ("metric", "device"))
        values = own["value"].to_numpy(dtype=np.float64)
        for rows in np.split(np.arange(len(own)), np.flatnonzero(np.diff(time_ns) > _MOMENT_NS) + 1):
            names = metrics[rows].tolist(), devices[rows].tolist()
            self.activity.samples.put(rank, int(time_ns[rows[0]]), *names, values[rows])

    def _read(self, until_ns: int) -> bool:
        for rank, _ in list_ranks(self._path):
            for name in ("spans", "system"):
                if (rank, name) not in self._streams:
                    self._streams[rank, name] = _Stream(self._path, rank, name)
        news = False
        put: dict[str, Callable[[int, pa.Table, int], None]] = {
            "spans": self._put_spans,
            "system": self._put_samples,
        }
        for (rank, name), stream in self._streams.items():
            while (table := stream.next(until_ns)) is not None:
                news = True
                try:
                    put[name](rank, table, stream.behind_ns)
                except (ValueError, KeyError, TypeError) as error:  # a run directory is untrusted
                    if not self._refused:
                        log.warning("A batch of %s is left out: %s", name, error)
                    self._refused = True
        newest = max((stream.seen_ns for stream in self._streams.values()), default=0)
        self.activity.move_to(min(until_ns, newest))
        return news

    def _put_spans(self, rank: int, table: pa.Table, behind_ns: int) -> None:
        start, duration, step = (_numbers(table, name) for name in ("start_ns", "duration_ns", "step"))
        phases = [str(one) for one in table["phase"].to_pylist()]
        self.activity.spans.put(rank, phases, start + behind_ns, duration, step)

    def _put_samples(self, rank: int, table: pa.Table, behind_ns: int) -> None:
        metrics, devices = (table[name].to_pylist() for name in ("metric", "device"))
        values = np.asarray(table["value"].to_numpy(), np.float64)
        time_ns = int(table["time_ns"][0].as_py()) + behind_ns
        self.activity.samples.put(rank, time_ns, metrics, devices, values)


class _Steady:
    """Times in their order of writing, none of which goes back.

    A training that is taken up again begins with what the clock shows then, which may have been set back.
    """

    def __init__(self) -> None:
        self.behind_ns = 0
        """What the clock is behind the one that the first times were told by."""
        self._last_ns = 0

    def of(self, time_ns: int) -> int:
        """The next time, by the first clock."""
        if self._last_ns - (time_ns + self.behind_ns) > _BACK_NS:
            self.behind_ns = self._last_ns - time_ns
        time_ns += self.behind_ns
        self._last_ns = max(time_ns, self._last_ns)
        return time_ns


class _Stream:
    """One stream of one rank, batch by batch."""

    def __init__(self, path: Path, rank: int, name: str) -> None:
        self._tail = tail(path, rank=rank, streams=(name,))
        self._name = name
        self._ahead: deque[tuple[int, pa.Table]] = deque(maxlen=1)
        self._steady = _Steady()
        self.seen_ns = 0
        """Newest time of what was given."""

    @property
    def behind_ns(self) -> int:
        """What to add to the times of the batch that was given last."""
        return self._steady.behind_ns

    def next(self, until_ns: int) -> pa.Table | None:
        """The next batch that is not younger than `until_ns`, or None."""
        if not self._ahead:
            chunk = next(self._tail)
            if chunk is None:
                return None
            self._ahead.append((self._steady.of(_newest_ns(chunk.table, self._name)), chunk.table))
        newest_ns, table = self._ahead[0]
        if newest_ns > until_ns:
            return None
        self._ahead.clear()
        self.seen_ns = max(self.seen_ns, newest_ns)
        return table


def _newest_ns(table: pa.Table, stream: str) -> int:
    """When the last span of a batch ended, or a sample was taken; 0 for what cannot be told."""
    try:
        if stream == "system":
            return int(table["time_ns"][0].as_py())
        return int((_numbers(table, "start_ns") + _numbers(table, "duration_ns")).max())
    except (ValueError, TypeError):
        return 0


def _numbers(table: pa.Table, name: str) -> Any:
    return np.asarray(table[name].to_numpy(), np.int64)
