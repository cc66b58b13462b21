"""What is known of a run directory, refreshed while it grows: segments, tensors, steps, problems."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.store.attempts import Attempts, read_attempts
from tdbg_lab.store.cache import ColumnCache
from tdbg_lab.store.clocks import Clocks
from tdbg_lab.store.events import TIME, LiveEvents, SealedEvents, between, moved
from tdbg_lab.store.layout import (
    CLOCK_GRAIN_NS,
    SEALED,
    SegmentFile,
    list_ranks,
    list_segments,
    modified_ns,
    segment_path,
)
from tdbg_lab.store.limits import MAX_PROBLEMS
from tdbg_lab.store.live import LiveStats
from tdbg_lab.store.parquet import FooterCache
from tdbg_lab.store.parts import Names, Part, Query
from tdbg_lab.store.seal import step_table
from tdbg_lab.store.sealed import SealedStats
from tdbg_lab.store.series import SeriesCache, cut
from tdbg_lab.store.table import read_merged

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from tdbg_lab.store.series import SampleSeries

Segment = LiveStats | SealedStats | LiveEvents | SealedEvents
_LIVE = (LiveStats, LiveEvents)
_MOST_LOOKS = 4
"""How often a directory is listed in one refresh when segments vanish between listing and opening."""
_FOREVER = 2**63 - 1
_NO_STEPS = np.empty((0, 3), np.int64)
_Place = tuple[int, str, int]
"""Rank, stream, number."""


class _Refusal(NamedTuple):
    """Why a file cannot be read, and when it was changed last."""

    modified_ns: int
    why: str


class RunState:
    """All segments of a run. Not thread-safe: `tdbg_lab.run.Run` holds a lock around it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.names = Names()
        self.last_write_ns = 0
        """Modification time of the newest segment; 0 when there is none."""
        self.ranks: list[int] = []
        self._cache = ColumnCache()
        self._footers = FooterCache()
        self._segments: dict[_Place, Segment] = {}
        self._series = SeriesCache()
        self._clocks = Clocks(path)
        self._problems: list[str] = []
        self._refused: dict[Path, _Refusal] = {}
        """Files that cannot be read: tried again when they change."""
        self._attempts: dict[int, Attempts] = {}
        self._steps: dict[int | None, NDArray[np.int64]] = {}
        self._listed: dict[int, int] = {}
        """Modification time of each rank's directory when it was listed; -1 to list it again."""
        self._newest: dict[int, list[Path]] = {}
        """Newest segment of each stream of each rank."""
        self._stamps: dict[_Place, tuple[int, int] | None] = {}
        """Which file each sealed segment was, in case another takes its place."""
        self._changed = False
        """Something changed that no `refresh` of a caller has told yet."""
        self._retry = False
        """A segment could not be opened or vanished, most often since it was sealed: list again."""

    @property
    def problems(self) -> list[str]:
        """What could not be read, and why; files that cannot be opened as long as they cannot."""
        return [*self._problems, *(each.why for each in self._refused.values())][:MAX_PROBLEMS]

    def refresh(self) -> bool:
        """Read what is new; True when rows, spans or samples came or went."""
        ranks = dict(list_ranks(self._path))
        changed, self._changed = self._changed or list(ranks) != self.ranks, False
        self.ranks = list(ranks)
        for place in [place for place in self._segments if place[0] not in ranks]:
            del self._segments[place]
            self._listed.pop(place[0], None)  # it may come back as it was
            changed = True
        for path in [path for path in self._refused if not path.exists()]:
            del self._refused[path]
            changed = True
        newest = [0]
        for rank, directory in ranks.items():
            changed = self._refresh_rank(rank, directory) or changed
            newest += [modified_ns(path) for path in self._newest.get(rank, ())]
        self.last_write_ns = max(newest)
        if changed:
            self._steps.clear()
        return changed

    def _refresh_rank(self, rank: int, directory: Path) -> bool:
        """Look at a rank's directory until nothing vanishes meanwhile."""
        changed = False
        for _ in range(_MOST_LOOKS):
            self._retry = False
            changed = self._look(rank, directory) or changed
            if not self._retry:
                break
        return changed

    def _look(self, rank: int, directory: Path) -> bool:
        """List a rank's directory when it changed, else only poll what is live."""
        changed_ns = modified_ns(directory)
        listed_at_ns = time.time_ns()
        if self._listed.get(rank) == changed_ns and not self._is_mended(directory):
            live = [p for p, s in self._segments.items() if p[0] == rank and isinstance(s, _LIVE)]
            polled = [self._poll(place, self._segments[place]) for place in live]
            return any(polled)
        listed = list_segments(directory)
        attempts = read_attempts(directory)
        changed = attempts != self._attempts.get(rank, Attempts())
        self._attempts[rank] = attempts
        seen: set[_Place] = set()
        for segments in listed.values():
            for file in segments:
                place = (rank, file.stream, file.number)
                seen.add(place)
                changed = self._visit(place, file) or changed
        for place in [place for place in self._segments if place[0] == rank and place not in seen]:
            del self._segments[place]
            changed = True
        self._newest[rank] = [segments[-1].path for segments in listed.values() if segments]
        # A change within the clock's grain of this look would go unseen: look again for a while. So does a
        # directory that seems empty: perhaps it could not be listed.
        settled = listed_at_ns - changed_ns > CLOCK_GRAIN_NS and not self._retry and bool(seen)
        self._listed[rank] = changed_ns if settled else -1
        return changed

    def steps(self, rank: int | None = None) -> NDArray[np.int64]:
        """Mode code, step and time_ns of all that was written, shape ``(S, 3)``."""
        found = self._steps.get(rank)
        if found is None:
            ahead = self._ahead() if rank is None else {}
            tables = [
                _earlier(self._standing(place), ahead.get(place[0], 0)) for place in self._stats_places(rank)
            ]
            table = np.concatenate([_NO_STEPS, *tables])
            found = self._steps[rank] = step_table(table[:, 0], table[:, 1], table[:, 2])
        return found

    def read(self, query: Query, rank: int | None = None) -> Part:
        """Rows of all segments, by tensor and step, one row for each."""
        return read_merged(lambda wanted: self.parts(wanted, rank), query)

    def parts(self, query: Query, rank: int | None = None) -> list[Part]:
        """Rows of each segment as they stand; those of one tensor and step may come several times."""
        try:
            return [part for place in self._stats_places(rank) for part in self._rows(place, query)]
        except (OSError, ValueError):  # deleted since the last refresh, or broken
            self._listed.clear()
            self._changed = self.refresh() or self._changed
        found: list[Part] = []
        for place in self._stats_places(rank):
            try:
                found += self._rows(place, query)
            except (OSError, ValueError) as error:
                self._problem(_said(error))
        return found

    def _rows(self, place: _Place, query: Query) -> list[Part]:
        """Rows of a segment, or of its sealed form where it was sealed since the last refresh."""
        segment = self._segments[place]
        end = self._attempts[place[0]].end(place[2], query.mode)
        if end <= query.first:
            return []
        if end <= query.last:
            query = replace(query, last=end - 1)
        try:
            return _read_stats(segment, query)
        except FileNotFoundError:
            self._changed = self._take_sealed(place, segment) or self._changed
            if self._segments[place] is segment:
                raise
        return _read_stats(self._segments[place], query)

    def events(self, stream: str, first_ns: int, last_ns: int) -> list[tuple[int, pa.Table]]:
        """Tables of spans or samples with their rank; times of all machines by one clock."""
        ahead = self._ahead()
        if not ahead:
            return self._events(stream, first_ns, last_ns)
        found = self._events(stream, *_widened(first_ns, last_ns, ahead))
        by_one = [(rank, moved(table, stream, ahead.get(rank, 0))) for rank, table in found]
        return [(rank, between(table, TIME[stream], first_ns, last_ns)) for rank, table in by_one]

    def last_ns(self, stream: str) -> int | None:
        """When the latest span began, or the latest sample was taken; None without any."""
        ahead = self._ahead()
        events = [(place[0], one) for place, one in self._segments.items() if place[1] == stream]
        times = [
            one.last_ns - ahead.get(rank, 0)
            for rank, one in events
            if isinstance(one, (LiveEvents, SealedEvents)) and one.last_ns is not None
        ]
        return max(times, default=None)

    def samples(self, metrics: Collection[str], first_ns: int, last_ns: int) -> list[SampleSeries]:
        """Samples of some metrics between two moments, both inclusive; times of all machines by one clock."""
        places = sorted(place for place in self._segments if place[1] == "system")
        found = [((place[0], place[2]), self._segments[place]) for place in places]
        segments = [(place, one) for place, one in found if isinstance(one, (LiveEvents, SealedEvents))]
        ahead = self._ahead()

        def problem(error: Exception) -> None:
            self._problem(_said(error))

        try:
            series = self._series.read(
                segments, metrics, *_widened(first_ns, last_ns, ahead), problem=problem
            )
        except (OSError, ValueError) as error:
            problem(error)
            return []
        return [cut(one, ahead.get(one.rank, 0), first_ns, last_ns) for one in series] if ahead else series

    def clock_offsets(self) -> Mapping[str, int]:
        """What the clocks of machines are ahead of that of the first rank's, ns, where they differ."""
        self._ahead()
        return self._clocks.by_host

    def _ahead(self) -> dict[int, int]:
        return self._clocks.ahead(self.ranks, lambda: self._events("spans", -_FOREVER, _FOREVER))

    def _events(self, stream: str, first_ns: int, last_ns: int) -> list[tuple[int, pa.Table]]:
        """Tables of spans or samples with their rank, times as each machine wrote them."""
        found = []
        for place in sorted(place for place in self._segments if place[1] == stream):
            segment = self._segments[place]
            if isinstance(segment, (LiveEvents, SealedEvents)):
                try:
                    found.append((place[0], segment.read(first_ns, last_ns)))
                except (OSError, ValueError) as error:
                    self._problem(_said(error))
        return found

    def _standing(self, place: _Place) -> NDArray[np.int64]:
        """Mode code, step and time_ns of what a segment has and no later attempt made anew."""
        segment = self._segments[place]
        table = segment.steps() if isinstance(segment, (LiveStats, SealedStats)) else _NO_STEPS
        return table[self._attempts[place[0]].standing(place[2], table[:, 0], table[:, 1])]

    def _stats_places(self, rank: int | None) -> list[_Place]:
        """Where segments of the stats stream are, in the order they were written."""
        places = [place for place in self._segments if place[1] == "stats" and rank in {None, place[0]}]
        return sorted(places, key=lambda place: (place[2], place[0]))

    def _visit(self, place: _Place, file: SegmentFile) -> bool:
        segment = self._segments.get(place)
        stamp = _stamp(file.path) if file.sealed else None
        if segment is None or segment.path != file.path or self._stamps.get(place) != stamp:
            opened = self._open(file)
            if opened is None:
                return False
            fresh = segment is None or segment.path == file.path or _grown(segment, opened)
            self._segments[place], self._stamps[place] = opened, stamp
            return self._poll(place, opened) or fresh
        return segment.problem is None and self._poll(place, segment)

    def _poll(self, place: _Place, segment: Segment) -> bool:
        try:
            changed = segment.poll()
        except OSError:  # sealed, deleted or replaced since the listing: the next look sees it
            self._retry = True
            self._listed.pop(place[0], None)
            if not segment.path.exists():
                return self._take_sealed(place, segment)
            del self._segments[place]
            return True
        if segment.problem is not None:
            self._problem(segment.problem)
        return changed

    def _take_sealed(self, place: _Place, live: Segment) -> bool:
        """A live segment is gone: take its sealed form; without one what was read stands until a listing."""
        sealed = segment_path(live.path.parent, place[1], place[2], SEALED)
        opened = self._open(SegmentFile(place[1], place[2], sealed=True, path=sealed))
        if opened is None:
            return False
        self._segments[place], self._stamps[place] = opened, _stamp(sealed)
        return _grown(live, opened)

    def _open(self, file: SegmentFile) -> Segment | None:
        refused, modified = self._refused.get(file.path), modified_ns(file.path)
        if refused is not None and refused.modified_ns == modified:
            return None
        try:
            opened = self._opened(file)
        except ValueError as error:
            self._refused[file.path] = _Refusal(modified, _said(error))
        except OSError:  # gone since the listing, or not ours to read
            self._retry = True
        else:
            self._refused.pop(file.path, None)
            return opened
        return None

    def _opened(self, file: SegmentFile) -> Segment:
        if not file.sealed:
            stats = file.stream == "stats"
            return LiveStats(file.path, self.names) if stats else LiveEvents(file.path, file.stream)
        if file.stream == "stats":
            return SealedStats(file.path, self.names, self._cache, self._footers)
        return SealedEvents(file.path, file.stream, self._cache, self._footers)

    def _is_mended(self, directory: Path) -> bool:
        """Whether a file that could not be read was written anew in its place, which no listing shows."""
        refused = ((path, each) for path, each in self._refused.items() if path.parent == directory)
        return any(modified_ns(path) != each.modified_ns for path, each in refused)

    def _problem(self, text: str) -> None:
        if text not in self._problems and len(self._problems) < MAX_PROBLEMS:
            self._problems.append(text)


def _widened(first_ns: int, last_ns: int, ahead: Mapping[int, int]) -> tuple[int, int]:
    """The part of the time as any of the machines may have written it."""
    early, late = min(ahead.values(), default=0), max(ahead.values(), default=0)
    return max(first_ns + min(early, 0), -_FOREVER), min(last_ns + max(late, 0), _FOREVER)


def _earlier(steps: NDArray[np.int64], ahead_ns: int) -> NDArray[np.int64]:
    """Mode, step and time of rows, by the clock of the others; shape ``(S, 3)``."""
    return steps - np.array([0, 0, ahead_ns]) if ahead_ns else steps


def _grown(live: Segment, sealed: Segment) -> bool:
    """Whether the sealed form has rows that were written after the last look at the live one."""
    if isinstance(live, LiveStats) and isinstance(sealed, SealedStats):
        return not np.array_equal(live.steps(), sealed.steps())
    return False


def _read_stats(segment: Segment, query: Query) -> list[Part]:
    return segment.read(query) if isinstance(segment, (LiveStats, SealedStats)) else []


def _said(error: Exception) -> str:
    """What went wrong, without a path: problems may reach a browser."""
    if isinstance(error, OSError) and error.strerror:
        return f"{PurePath(str(error.filename or 'a segment')).name}: {error.strerror}"
    return str(error)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        facts = path.lstat()
    except OSError:
        return 0, 0
    return facts.st_ino, facts.st_mtime_ns
