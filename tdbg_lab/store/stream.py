"""Writing one stream of one rank: live segments, one after the other."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.errors import StoreError
from tdbg_lab.store.info import run_id
from tdbg_lab.store.ipc import END_OF_STREAM
from tdbg_lab.store.layout import LIVE, SegmentFile, list_segments, segment_path
from tdbg_lab.store.limits import AGED_SHARE, SEGMENT_AGE_NS, SEGMENT_BATCHES, SEGMENT_BYTES
from tdbg_lab.store.outage import Outage
from tdbg_lab.store.schema import SCHEMAS, segment_metadata

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

    from tdbg_lab.store.seal import Sealer


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Where a rank writes."""

    path: Path
    rank: int
    run_id: str

    def is_ours(self) -> bool:
        """Whether the run that is there now is still this one; its directory may have been deleted."""
        return self.path.is_dir() and run_id(self.path.parent) == self.run_id


class StreamWriter:
    """Appends record batches to live segments; closed ones go to the sealer.

    The first failure raises `StoreError`; after it everything is dropped and counted, so that a
    full disk is told once and then costs nothing. Now and then it is tried again, with a new segment:
    when it goes well, writing goes on and `gaps` says what is missing. A forked child writes nothing.
    """

    def __init__(self, place: RankPlace, stream: str, sealer: Sealer | None) -> None:
        self._place = place
        self._stream = stream
        self._sealer = sealer
        self._most_batches = SEGMENT_BATCHES[stream]
        self._lock = threading.Lock()
        self._pid = os.getpid()
        leftovers = list_segments(place.path)[stream]
        self._number = leftovers[-1].number if leftovers else 0
        if sealer is not None:
            for segment in leftovers:
                _finish_sealing(segment, sealer)
        self._descriptor = -1
        self._segment: SegmentFile | None = None
        self._abandoned: SegmentFile | None = None
        """The segment that the last failure ended."""
        self.schema: pa.Schema = SCHEMAS[stream]
        self._batches = self._bytes = self._opened_ns = self._created_ns = 0
        self.bytes_written = 0
        self.dropped = 0
        """Batches not written, after a failure or after `close`."""
        self.gaps: list[str] = []
        """What is missing, of each failure that is over; who reads it takes it."""
        self._outage = Outage()
        self._closed = False

    @property
    def next_segment(self) -> int:
        """Number of the segment that is begun next."""
        return self._number + 1

    def append(self, encode: Callable[[int, pa.Schema], memoryview]) -> None:
        """Write the message that `encode(seq, schema)` returns, whole, before returning.

        Raises
        ------
        StoreError
            When it cannot be written, once until that goes well again.
        """
        if os.getpid() != self._pid:  # before the lock: a fork may have copied it locked
            return
        with self._lock:
            if self._closed or self._outage.blocks:
                self._drop()
                return
            try:
                if self._outage.reason is not None and not self._place.is_ours():
                    raise FileNotFoundError(2, "the run directory was deleted")
                self._rotate()
                self._write(encode(self._batches, self.schema))
            except OSError as error:
                reason = error.strerror or str(error)
                self._drop()
                self._abandon()
                if self._outage.begin(reason):
                    raise StoreError(
                        f"Cannot write {self._stream} of rank {self._place.rank}: {reason}."
                    ) from error
                return
            self._batches += 1
            if self._outage.reason is not None:
                self.gaps.append(self._outage.end(f"batches of {self._stream}"))
                self._seal_abandoned()

    def _drop(self) -> None:
        self.dropped += 1
        self._outage.miss()

    def close(self) -> None:
        """End the open segment and hand it to the sealer. Idempotent."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if not self._closed:
                self._finish_segment()
            self._closed = True

    def _rotate(self) -> None:
        if self._segment is not None:
            if os.fstat(self._descriptor).st_nlink == 0:
                raise FileNotFoundError(2, "the run directory was deleted")
            aged = time.monotonic_ns() - self._opened_ns > SEGMENT_AGE_NS
            full = self._batches >= (self._most_batches // AGED_SHARE if aged else self._most_batches)
            if not full and self._bytes < SEGMENT_BYTES:
                return
            self._finish_segment()
        self._open_segment()

    def _open_segment(self) -> None:
        """Begin the next segment; only a whole one is written to, wherever an interrupt may come."""
        self._release()
        number = self._number = self._number + 1
        path = segment_path(self._place.path, self._stream, number, LIVE)
        flags = (
            os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        )
        self._descriptor = os.open(path, flags, 0o644)
        self._batches = self._bytes = 0
        self._opened_ns = time.monotonic_ns()
        self._created_ns = max(time.time_ns(), self._created_ns + 1)
        place = self._place
        metadata = segment_metadata(self._stream, place.rank, number, place.run_id, self._created_ns)
        self.schema = SCHEMAS[self._stream].with_metadata(metadata)
        self._write(memoryview(self.schema.serialize()))
        self._segment = SegmentFile(self._stream, number, sealed=False, path=path)

    def _write(self, data: memoryview) -> None:
        size = len(data)
        while data:
            data = data[os.write(self._descriptor, data) :]
        self._bytes += size
        self.bytes_written += size

    def _finish_segment(self) -> None:
        segment, self._segment = self._segment, None
        if segment is None:
            return
        try:
            os.write(self._descriptor, END_OF_STREAM)
        except OSError:  # readable without it
            pass
        finally:
            self._release()
        if self._sealer is not None:
            self._sealer.add(segment)

    def _abandon(self) -> None:
        """Close a segment that failed; what was acknowledged stays readable in it, and an empty one goes."""
        if self._descriptor < 0:  # it could not even be made
            return
        path = segment_path(self._place.path, self._stream, self._number, LIVE)
        if self._batches:
            self._abandoned = SegmentFile(self._stream, self._number, sealed=False, path=path)
        else:
            with contextlib.suppress(OSError):
                if os.fstat(self._descriptor).st_nlink:
                    path.unlink()
        self._segment = None
        self._release()

    def _seal_abandoned(self) -> None:
        segment, self._abandoned = self._abandoned, None
        if segment is not None and self._sealer is not None:
            self._sealer.add(segment)

    def _release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _finish_sealing(segment: SegmentFile, sealer: Sealer) -> None:
    """Take up what a killed writer left: seal it, or remove the live form it had not removed yet."""
    if not segment.sealed:
        sealer.add(segment)
        return
    live = segment_path(segment.path.parent, segment.stream, segment.number, LIVE)
    with contextlib.suppress(OSError):
        live.unlink(missing_ok=True)
