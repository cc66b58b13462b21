"""What is known of a run directory, refreshed while it grows: segments, tensors, steps, problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.store.cache import ColumnCache
from tdbg_lab.store.events import LiveEvents, SealedEvents
from tdbg_lab.store.layout import SegmentFile, list_ranks, list_segments
from tdbg_lab.store.limits import MAX_PROBLEMS
from tdbg_lab.store.live import LiveStats
from tdbg_lab.store.parquet import FooterCache
from tdbg_lab.store.parts import LISTS, Names, Part, Query, join
from tdbg_lab.store.schema import SCALARS
from tdbg_lab.store.seal import step_table
from tdbg_lab.store.sealed import SealedStats
from tdbg_lab.store.table import merged, ordered, repeated

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

Segment = LiveStats | SealedStats | LiveEvents | SealedEvents
_Place = tuple[int, str, int]
"""Rank, stream, number."""


class RunState:
    """All segments of a run. Not thread-safe: `tdbg_lab.run.Run` holds a lock around it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.names = Names()
        self.problems: list[str] = []
        self.last_write_ns = 0
        """Modification time of the newest segment; 0 when there is none."""
        self.ranks: list[int] = []
        self._cache = ColumnCache()
        self._footers = FooterCache()
        self._segments: dict[_Place, Segment] = {}
        self._refused: dict[Path, int] = {}
        """Files that cannot be read, with their modification time: tried again when they change."""
        self._steps: dict[int | None, NDArray[np.int64]] = {}

    def refresh(self) -> bool:
        """Read what is new; True when rows, spans or samples came or went."""
        changed = False
        seen: set[_Place] = set()
        written_ns = 0
        ranks = list_ranks(self._path)
        for rank, directory in ranks:
            for segments in list_segments(directory).values():
                for file in segments:
                    place = (rank, file.stream, file.number)
                    seen.add(place)
                    changed = self._visit(place, file) or changed
                if segments:
                    written_ns = max(written_ns, _modified_ns(segments[-1].path))
        for place in [place for place in self._segments if place not in seen]:
            del self._segments[place]
            changed = True
        self.last_write_ns = written_ns
        present = [rank for rank, _ in ranks]
        changed = changed or present != self.ranks
        self.ranks = present
        if changed:
            self._steps.clear()
        return changed

    def steps(self, rank: int | None = None) -> NDArray[np.int64]:
        """Mode code, step and time_ns of all that was written, shape ``(S, 3)``."""
        found = self._steps.get(rank)
        if found is None:
            tables = [segment.steps() for segment in self._stats(rank)]
            table = np.concatenate([np.empty((0, 3), np.int64), *tables])
            found = self._steps[rank] = step_table(table[:, 0], table[:, 1], table[:, 2])
        return found

    def read(self, query: Query, rank: int | None = None) -> Part:
        """Rows of all segments, by tensor and step, one row for each."""
        part = ordered(join(self.parts(query, rank), query))
        if not repeated(part):
            return part
        columns = dict.fromkeys((*query.columns, *SCALARS))
        for pair in (LISTS[:2], LISTS[2:]):
            if any(name in columns for name in pair):
                columns.update(dict.fromkeys(pair))
        full = Query(query.mode, query.tensors, tuple(columns), query.first, query.last)
        return merged(ordered(join(self.parts(full, rank), full)))

    def parts(self, query: Query, rank: int | None = None) -> list[Part]:
        """Rows of each segment as they stand; those of one tensor and step may come several times."""
        found: list[Part] = []
        for segment in self._stats(rank):
            try:
                found += segment.read(query)
            except (OSError, ValueError) as error:  # gone since the last refresh, or broken
                self._problem(str(error))
        return found

    def events(self, stream: str, first_ns: int, last_ns: int) -> list[tuple[int, pa.Table]]:
        """Tables of spans or samples with their rank."""
        found = []
        for place in sorted(place for place in self._segments if place[1] == stream):
            segment = self._segments[place]
            if isinstance(segment, (LiveEvents, SealedEvents)):
                try:
                    found.append((place[0], segment.read(first_ns, last_ns)))
                except (OSError, ValueError) as error:
                    self._problem(str(error))
        return found

    def _stats(self, rank: int | None) -> list[LiveStats | SealedStats]:
        """Segments of the stats stream, in the order they were written."""
        places = [place for place in self._segments if place[1] == "stats" and rank in {None, place[0]}]
        segments = [self._segments[place] for place in sorted(places, key=lambda place: (place[2], place[0]))]
        return [segment for segment in segments if isinstance(segment, (LiveStats, SealedStats))]

    def _visit(self, place: _Place, file: SegmentFile) -> bool:
        segment = self._segments.get(place)
        if segment is None or segment.path != file.path:
            opened = self._open(file)
            if opened is None:
                return False
            fresh = segment is None
            self._segments[place] = segment = opened
            return self._poll(place, segment) or fresh
        return segment.problem is None and self._poll(place, segment)

    def _poll(self, place: _Place, segment: Segment) -> bool:
        try:
            changed = segment.poll()
        except OSError:  # sealed, deleted or replaced since the listing: the next look sees it
            del self._segments[place]
            return True
        if segment.problem is not None:
            self._problem(segment.problem)
        return changed

    def _open(self, file: SegmentFile) -> Segment | None:
        if file.path in self._refused and self._refused[file.path] == _modified_ns(file.path):
            return None
        try:
            if not file.sealed:
                stats = file.stream == "stats"
                return LiveStats(file.path, self.names) if stats else LiveEvents(file.path, file.stream)
            if file.stream == "stats":
                return SealedStats(file.path, self.names, self._cache, self._footers)
            return SealedEvents(file.path, file.stream, self._cache, self._footers)
        except ValueError as error:
            self._refused[file.path] = _modified_ns(file.path)
            self._problem(str(error))
        except OSError as error:
            self._problem(str(error))
        return None

    def _problem(self, text: str) -> None:
        if text not in self.problems and len(self.problems) < MAX_PROBLEMS:
            self.problems.append(text)


def _modified_ns(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0
