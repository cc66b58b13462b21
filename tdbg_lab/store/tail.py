"""Following a run: each record exactly once, as a pure generator.

A segment is known for good by the uid in its header, and ordered by when it was made. Its batches are
numbered (column ``seq``), also after sealing has sorted them. So a position - a segment and the next
batch in it - survives sealing, restarts of the writer, truncation and deletion.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tdbg_lab.store.arrays import number_array
from tdbg_lab.store.attempts import Attempts, read_attempts
from tdbg_lab.store.ipc import BatchReader, Header, read_header
from tdbg_lab.store.layout import SegmentFile, list_ranks, list_segments
from tdbg_lab.store.parquet import SealedFile
from tdbg_lab.store.schema import MODE_CODE, SCHEMAS
from tdbg_lab.store.source import is_foreign

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    _Batch = tuple[int, pa.Table, NDArray[np.int64]]
    """Number, table, and rows in it."""

_MAX_CURSOR_CHARS = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Chunk:
    """One batch a writer appended."""

    rank: int
    stream: str
    source: pa.Table
    """What was read at once: of a sealed segment all its batches, and the same object for each of them.
    Columns of `tdbg_lab.store.schema`."""
    rows: NDArray[np.int64]
    """Rows of this batch there; those of a batch that was sealed meanwhile come sorted."""
    cursor: str
    """Where to go on after this chunk; opaque."""

    @property
    def table(self) -> pa.Table:
        """The batch by itself."""
        if len(self.rows) == len(self.source):
            return self.source
        return self.source.take(number_array(self.rows, pa.int64()))


@dataclass(slots=True)
class _Position:
    """How far one stream of one rank was read."""

    number: int = 0
    header: Header = field(default_factory=lambda: Header("", "", -1))
    seq: int = 0
    """The next batch of that segment."""
    done: bool = False
    """The segment was read to its end: there will be nothing more in it."""


def tail(
    run_path: str | Path,
    *,
    cursor: str | None = None,
    streams: Sequence[str] = ("stats",),
    rank: int | None = None,
) -> Iterator[Chunk | None]:
    """Every batch of a run, each exactly once; None whenever there is nothing new at the moment.

    It never ends, never waits and never raises over what is on disk: call it again after a while. When
    the directory holds another run than before, that one is read from its beginning. `rank` None means
    all ranks, one after the other. What a later attempt makes anew (`tdbg_lab.store.attempts`) is passed
    over.
    """
    if is_foreign(Path(run_path)):
        yield from _foreign(Path(run_path), cursor, streams)
    follower = _Follower(Path(run_path), tuple(streams), rank)
    follower.load(cursor)
    while True:
        yield from follower.look()
        yield None


def tailed_ranks(run_path: Path) -> list[int]:
    """Ranks to follow one by one; of a foreign store, rank 0 stands for all its workers."""
    return [0] if is_foreign(run_path) else [rank for rank, _ in list_ranks(run_path)]


def _foreign(run_path: Path, cursor: str | None, streams: Sequence[str]) -> Iterator[Chunk | None]:
    """Every step of a store that another library wrote; it has no other stream to follow."""
    from tdbg_lab.store.smdebug.follow import follow

    for found in follow(run_path, cursor) if "stats" in streams else iter(lambda: None, 0):
        if found is None:
            yield None
        else:
            rank, table, place = found
            yield Chunk(rank, "stats", table, np.arange(len(table)), place)


class _Follower:
    def __init__(self, path: Path, streams: tuple[str, ...], rank: int | None) -> None:
        self._path = path
        self._streams = streams
        self._rank = rank
        self._positions: dict[tuple[int, str], _Position] = {}
        self._readers: dict[Path, BatchReader] = {}
        self._headers: dict[Path, tuple[tuple[int, int], Header]] = {}
        """Headers of sealed segments, with inode and modification time of the file."""
        self._refused: dict[Path, tuple[int, int]] = {}
        self._stamps: dict[Path, tuple[int, int]] = {}
        self._attempts = Attempts()
        """Of the rank that is looked at."""

    def look(self) -> Iterator[Chunk]:
        """What is new now."""
        for rank, directory in list_ranks(self._path):
            if self._rank is not None and rank != self._rank:
                continue
            segments = list_segments(directory)
            self._attempts = read_attempts(directory)
            for stream in self._streams:
                yield from self._stream(rank, stream, segments[stream])

    def load(self, cursor: str | None) -> None:
        """Take over a cursor; one that is not ours starts from the beginning."""
        if not cursor or len(cursor) > _MAX_CURSOR_CHARS:
            return
        try:
            for name, (number, run, uid, created_ns, seq) in json.loads(cursor).items():
                rank, _, stream = name.partition("/")
                header = Header(str(run), str(uid), int(created_ns))
                self._positions[int(rank), stream] = _Position(int(number), header, int(seq))
        except (ValueError, TypeError, AttributeError, RecursionError):
            self._positions.clear()

    def _stream(self, rank: int, stream: str, segments: list[SegmentFile]) -> Iterator[Chunk]:
        position = self._positions.setdefault((rank, stream), _Position())
        present = {segment.path for segment in segments}
        for path in [p for p in self._readers if p not in present and _belongs(p, segments)]:
            del self._readers[path]
        try:
            ahead = self._ahead(segments, position)
        except OSError:  # something vanished under the look
            return
        for segment in ahead:
            try:
                batches = self._sealed(segment, position) if segment.sealed else self._live(segment, position)
            except PermissionError:  # not ours to read; what comes after it may be
                continue
            except OSError:  # sealed, deleted or replaced meanwhile: the next look sees what is there
                self._readers.pop(segment.path, None)
                return
            except ValueError:
                self._refused[segment.path] = self._stamps.get(segment.path, (0, 0))
                continue
            for seq, table, rows in batches:
                position.seq = seq + 1
                standing = self._standing(segment, table, rows)
                if len(standing):
                    yield Chunk(rank, stream, table, standing, self._cursor())
            if not segment.sealed and self._reader(segment).ended:
                position.done = True  # its sealed form holds nothing more

    def _standing(self, segment: SegmentFile, table: pa.Table, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows that no later attempt made anew, as far as that is known by now."""
        if segment.stream != "stats" or segment.number >= self._attempts.latest:
            return rows
        some = table.select(["mode", "step"]).take(number_array(rows, pa.int64()))
        codes = np.array([MODE_CODE.get(mode, 0) for mode in some["mode"].to_pylist()], np.int64)
        steps = some["step"].fill_null(0).to_numpy()
        return rows[self._attempts.standing(segment.number, codes, steps)]

    def _ahead(self, segments: list[SegmentFile], position: _Position) -> list[SegmentFile]:
        """Segments that were not read to their end, in the order they were made."""
        if not position.header.uid:
            return segments
        here = [segment for segment in segments if segment.number == position.number]
        if here and self._uid_is(here[0], position.header.uid):
            return [segment for segment in segments if segment.number >= position.number]
        # The segment we stood in is gone: numbers may have begun again.
        return [segment for segment in segments if self._is_new(segment, position.header)]

    def _uid_is(self, segment: SegmentFile, uid: str) -> bool:
        header = self._header(segment)
        return header is not None and header.uid == uid

    def _is_new(self, segment: SegmentFile, last: Header) -> bool:
        header = self._header(segment)
        return header is not None and (header.run != last.run or header.created_ns > last.created_ns)

    def _header(self, segment: SegmentFile) -> Header | None:
        """Who a segment is; None when that is not readable (yet).

        Raises
        ------
        OSError
            If it vanished.
        """
        try:
            if not segment.sealed:
                reader = self._checked_reader(segment)
                return read_header(reader.metadata) if reader.metadata else None
            stamp = self._stamps[segment.path] = _stamp(segment.path)
            known = self._headers.get(segment.path)
            if known is None or known[0] != stamp:
                known = self._headers[segment.path] = (stamp, SealedFile(segment.path, segment.stream).header)
            return known[1]
        except PermissionError:
            return None
        except OSError:
            self._readers.pop(segment.path, None)
            raise
        except ValueError:
            return None

    def _checked_reader(self, segment: SegmentFile) -> BatchReader:
        reader = self._reader(segment)
        try:
            reader.check()
        except (PermissionError, FileNotFoundError):
            raise
        except OSError:  # another file took the place of the one it knew
            del self._readers[segment.path]
            reader = self._reader(segment)
            reader.check()
        return reader

    def _reader(self, segment: SegmentFile) -> BatchReader:
        reader = self._readers.get(segment.path)
        if reader is None:
            reader = self._readers[segment.path] = BatchReader(segment.path, SCHEMAS[segment.stream])
        return reader

    def _live(self, segment: SegmentFile, position: _Position) -> list[_Batch]:
        reader = self._reader(segment)
        batches = reader.read()
        if reader.metadata:
            _enter(position, segment.number, read_header(reader.metadata))
        found = [(_seq(batch), batch) for batch in batches if batch.num_rows]
        return [
            (seq, pa.Table.from_batches([batch]), np.arange(batch.num_rows))
            for seq, batch in found
            if seq >= position.seq
        ]

    def _sealed(self, segment: SegmentFile, position: _Position) -> list[_Batch]:
        header = self._header(segment)
        if header is None or self._refused.get(segment.path) == self._stamps.get(segment.path):
            return []
        _enter(position, segment.number, header)
        if position.done:
            return []
        table = SealedFile(segment.path, segment.stream).read_all()
        position.done = True
        return [(seq, table, rows) for seq, rows in _by_seq(table) if seq >= position.seq]

    def _cursor(self) -> str:
        positions = {
            f"{rank}/{stream}": [p.number, p.header.run, p.header.uid, p.header.created_ns, p.seq]
            for (rank, stream), p in self._positions.items()
        }
        return json.dumps(positions, separators=(",", ":"))


def _belongs(path: Path, segments: list[SegmentFile]) -> bool:
    return (
        bool(segments) and path.parent == segments[0].path.parent and path.name.startswith(segments[0].stream)
    )


def _stamp(path: Path) -> tuple[int, int]:
    facts = path.lstat()
    return facts.st_ino, facts.st_mtime_ns


def _seq(batch: Any) -> int:
    """Number of a batch.

    Raises
    ------
    ValueError
        If it has none.
    """
    seq = batch["seq"][0].as_py()
    if not isinstance(seq, int):
        raise ValueError("a batch has no number")  # noqa: TRY004 - the content is wrong
    return seq


def _by_seq(table: pa.Table) -> list[tuple[int, NDArray[np.int64]]]:
    """The batches a sealed segment was made of: their numbers and rows."""
    if not table.num_rows:
        return []
    seqs = np.asarray(table["seq"].to_numpy())
    order = np.argsort(seqs, kind="stable")
    starts = np.flatnonzero(np.diff(seqs[order])) + 1
    return [(int(seqs[rows[0]]), rows) for rows in np.split(order, starts)]


def _enter(position: _Position, number: int, header: Header) -> None:
    if position.header.uid != header.uid:
        position.header, position.seq, position.done = header, 0, False
    position.number = number
