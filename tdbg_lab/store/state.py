"""What is known of a run directory, refreshed while it grows: segments, tensors, steps, problems."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.store.events import LiveEvents, SealedEvents
from tdbg_lab.store.layout import SegmentFile, list_ranks, list_segments
from tdbg_lab.store.limits import MAX_PROBLEMS
from tdbg_lab.store.live import LiveStats
from tdbg_lab.store.parts import Names, Part, Query, join
from tdbg_lab.store.schema import SCALARS
from tdbg_lab.store.seal import step_table
from tdbg_lab.store.sealed import ColumnCache, SealedStats
from tdbg_lab.store.table import merged, ordered, repeated

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

Segment = Any
_Place = tuple[int, str, int]


class RunState:
    """All segments of a run. Not thread-safe: `Run` holds a lock around it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.names = Names()
        self.problems: list[str] = []
        self.last_write_ns = 0
        """Modification time of the newest segment."""
        self.ranks: list[int] = []
        self._cache = ColumnCache()
        self._segments: dict[_Place, Segment] = {}
        self._refused: dict[Path, int] = {}
        self._steps: dict[int | None, NDArray[np.int64]] = {}

    def refresh(self) -> bool:
        """Read what is new; True when rows, spans or samples came or went."""
        changed = False
        seen: set[_Place] = set()
        ranks = list_ranks(self._path)
        for rank, directory in ranks:
            for segments in list_segments(directory).values():
                for file in segments:
                    place = (rank, file.stream, file.number)
                    seen.add(place)
                    changed = self._visit(place, file) or changed
        gone = [place for place in self._segments if place not in seen]
        for place in gone:
            del self._segments[place]
        present = [rank for rank, _ in ranks]
        if changed or gone or present != self.ranks:
            self.ranks = present
            self._steps.clear()
            self.last_write_ns = time.time_ns() if changed else self.last_write_ns
            return True
        return False

    def stats_segments(self, rank: int | None) -> list[Segment]:
        """Segments of the stats stream, in the order they were written."""
        places = [p for p in self._segments if p[1] == "stats" and rank in (None, p[0])]
        return [self._segments[place] for place in sorted(places, key=lambda p: (p[2], p[0]))]

    def steps(self, rank: int | None = None) -> NDArray[np.int64]:
        """Mode code, step and time_ns of all that was written, shape ``(S, 3)``."""
        found = self._steps.get(rank)
        if found is None:
            tables = [segment.steps() for segment in self.stats_segments(rank)]
            table = np.concatenate([np.empty((0, 3), np.int64), *tables])
            found = self._steps[rank] = step_table(table[:, 0], table[:, 1], table[:, 2])
        return found

    def read(self, query: Query, rank: int | None = None) -> Part:
        """Rows of all segments, by tensor and step, one row for each."""
        part = self._gather(query, rank)
        if not repeated(part):
            return part
        columns = tuple(dict.fromkeys((*query.columns, *SCALARS)))
        if any(name.startswith("hist") for name in columns):
            columns = tuple(dict.fromkeys((*columns, "hist_bins", "hist_counts")))
        if any(name.startswith("channel") for name in columns):
            columns = tuple(dict.fromkeys((*columns, "channel_zero_frac", "channel_mean")))
        full = Query(query.mode, query.tensors, columns, query.first, query.last)
        return merged(self._gather(full, rank))

    def events(self, stream: str, first_ns: int, last_ns: int) -> list[tuple[int, pa.Table]]:
        """Tables of spans or samples with their rank."""
        found = []
        for place in sorted(p for p in self._segments if p[1] == stream):
            try:
                found.append((place[0], self._segments[place].read(first_ns, last_ns)))
            except (OSError, ValueError) as error:
                self._problem(str(error))
        return found

    def _gather(self, query: Query, rank: int | None) -> Part:
        parts: list[Part] = []
        for segment in self.stats_segments(rank):
            try:
                parts += segment.read(query)
            except (OSError, ValueError) as error:
                self._problem(str(error))
        return ordered(join(parts, query))

    def _visit(self, place: _Place, file: SegmentFile) -> bool:
        segment = self._segments.get(place)
        if segment is None or segment.path != file.path:
            opened = self._open(file)
            if opened is None:
                return False
            self._segments[place] = opened
            opened.poll()
            return True
        if segment.problem is not None:
            self._problem(segment.problem)
            return False
        try:
            return bool(segment.poll())
        except OSError:  # sealed or deleted since the listing: the next look sees it
            return False

    def _open(self, file: SegmentFile) -> Segment | None:
        if file.path in self._refused:
            return None
        try:
            if file.stream == "stats":
                if file.sealed:
                    return SealedStats(file.path, self.names, self._cache)
                return LiveStats(file.path, self.names)
            if file.sealed:
                return SealedEvents(file.path, file.stream)
            return LiveEvents(file.path, file.stream)
        except ValueError as error:
            self._refused[file.path] = 1
            self._problem(str(error))
        except OSError:
            pass
        return None

    def _problem(self, text: str) -> None:
        if text not in self.problems and len(self.problems) < MAX_PROBLEMS:
            self.problems.append(text)
