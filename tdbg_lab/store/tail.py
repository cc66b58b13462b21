"""Following a run: each record exactly once, as a pure generator."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tdbg_lab.store.info import RUN_FILE
from tdbg_lab.store.ipc import BatchReader
from tdbg_lab.store.layout import SegmentFile, list_ranks, list_segments, read_json
from tdbg_lab.store.parquet import SealedFile
from tdbg_lab.store.schema import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Chunk:
    """One batch a writer appended."""

    rank: int
    stream: str
    table: pa.Table
    """Columns of `tdbg_lab.store.schema`, in the order they were written for a live segment and in
    the order of the sealed one otherwise."""
    cursor: str
    """Where to go on after this chunk; opaque."""


@dataclass(slots=True)
class _Position:
    """How far one stream of one rank was read."""

    number: int = 0
    uid: str = ""
    seq: int = 0
    """The next batch of that segment."""


def tail(
    run_path: str | Path, *, cursor: str | None = None, streams: Sequence[str] = ("stats",)
) -> Iterator[Chunk | None]:
    """Every batch of a run, each exactly once; None whenever there is nothing new at the moment.

    It never ends, never waits and never raises over what is on disk: call it again after a while.
    Sealing, rotation, restarts of the writer, truncation and deletion do not repeat a record. When the
    directory holds another run than before, that run is read from its beginning.
    """
    follower = _Follower(Path(run_path), cursor, tuple(streams))
    while True:
        yield from follower.step()
        yield None


class _Follower:
    def __init__(self, path: Path, cursor: str | None, streams: tuple[str, ...]) -> None:
        self._path = path
        self._streams = streams
        self._run_id: str = ""
        self._positions: dict[tuple[int, str], _Position] = {}
        self._readers: dict[Path, BatchReader] = {}
        self._backlog: dict[Path, int] = {}
        self._refused: set[Path] = set()
        self._load(cursor)

    def step(self) -> Iterator[Chunk]:
        """What is new now."""
        run_id = self._read_id()
        if run_id and run_id != self._run_id:
            if self._run_id:
                self._positions.clear()
                self._readers.clear()
                self._refused.clear()
            self._run_id = run_id
        for rank, directory in list_ranks(self._path):
            segments = list_segments(directory)
            for stream in self._streams:
                yield from self._stream(rank, stream, segments[stream])

    def _stream(self, rank: int, stream: str, segments: list[SegmentFile]) -> Iterator[Chunk]:
        position = self._positions.setdefault((rank, stream), _Position())
        for segment in segments:
            if segment.number < position.number or segment.path in self._refused:
                continue
            read = self._sealed if segment.sealed else self._live
            try:
                batches = read(segment, position)
            except OSError:  # sealed or deleted meanwhile: the next look finds the other form
                return
            for seq, table in batches:
                position.seq = seq + 1
                yield Chunk(rank, stream, table, self._cursor())

    def _live(self, segment: SegmentFile, position: _Position) -> list[tuple[int, pa.Table]]:
        reader = self._readers.get(segment.path)
        if reader is None:
            reader = self._readers[segment.path] = BatchReader(segment.path, SCHEMAS[segment.stream])
        batches = reader.read()
        if reader.metadata:
            _enter(position, segment.number, reader.metadata["uid"])
        found = ((int(batch["seq"][0].as_py()), batch) for batch in batches if batch.num_rows)
        return [(seq, pa.Table.from_batches([batch])) for seq, batch in found if seq >= position.seq]

    def _sealed(self, segment: SegmentFile, position: _Position) -> list[tuple[int, pa.Table]]:
        self._readers.pop(segment.path.with_suffix(".arrows"), None)
        if position.number == segment.number and segment.path in self._backlog:
            return []
        try:
            file = SealedFile(segment.path, segment.stream)
            uid = file.metadata["uid"]
            _enter(position, segment.number, uid)
            table = file.read_all()
        except ValueError:
            self._refused.add(segment.path)
            return []
        self._backlog = {segment.path: 1}
        table = table.filter(pc.greater_equal(table["seq"], position.seq))
        seqs = table["seq"].to_numpy()
        order = np.argsort(seqs, kind="stable")
        ordered = table.take(pa.array(order))
        if not len(seqs):
            return []
        starts = np.flatnonzero(np.r_[True, np.diff(seqs[order]) != 0])
        ends = [*starts[1:], len(seqs)]
        return [(int(seqs[order][a]), ordered.slice(a, b - a)) for a, b in zip(starts, ends, strict=True)]

    def _read_id(self) -> str:
        try:
            return str(read_json(self._path / RUN_FILE).get("id", ""))
        except (OSError, ValueError):
            return ""

    def _cursor(self) -> str:
        positions = {
            f"{rank}/{stream}": [p.number, p.uid, p.seq] for (rank, stream), p in self._positions.items()
        }
        return json.dumps({"run": self._run_id, "at": positions}, separators=(",", ":"))

    def _load(self, cursor: str | None) -> None:
        """Take over a cursor; one that is not ours starts from the beginning."""
        try:
            value: Any = json.loads(cursor) if cursor else {}
            for name, (number, uid, seq) in value.get("at", {}).items():
                rank, _, stream = name.partition("/")
                self._positions[int(rank), stream] = _Position(int(number), str(uid), int(seq))
            self._run_id = str(value.get("run", ""))
        except (ValueError, TypeError, AttributeError):
            self._positions.clear()


def _enter(position: _Position, number: int, uid: str) -> None:
    if (position.number, position.uid) != (number, uid):
        position.number, position.uid, position.seq = number, uid, 0
