"""Sends a run directory to its object store, each byte once and none lost.

What is there already is asked of the object store itself, by listing it once at the start: no journal
can disagree with it. Everything sent is named by what it is, so sending it twice changes nothing.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.errors import StoreError
from tdbg_lab.store.layout import read_bytes
from tdbg_lab.store.limits import MAX_JSON_BYTES
from tdbg_lab.store.remote.claim import claim
from tdbg_lab.store.remote.inbox import Inbox
from tdbg_lab.store.remote.keys import RUN_KEY, ByteRange, is_live, parse_range, reach, sealed_key
from tdbg_lab.store.remote.outgoing import LocalFile, read_between, read_identity, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.store.remote.objects import ObjectInfo, Objects
    from tdbg_lab.store.remote.spool import Spooled
    from tdbg_lab.store.remote.url import StoreUrl

__all__ = ["Sent", "Uploader"]

_Part = ByteRange | None
"""What one object holds: some bytes of a live segment, or a whole file."""
RANGE_BYTES = 8 * 2**20
"""Largest range of a live segment in one object."""
THREADS = 4
CLOCK_MARGIN_NS = 60 * 10**9
"""A file is sent again at the start unless its object is this much younger: clocks differ."""
HEARTBEAT_NS = 30 * 10**9
"""``run.json`` is sent again this often: its age tells readers whether anybody is still there."""


@dataclass(slots=True)
class Sent:
    """What one pass did."""

    files: int = 0
    n_bytes: int = 0


class Uploader:
    """Sends what is new, one pass a call. Not thread-safe.

    Parameters
    ----------
    connect
        Makes the objects below an address.
    """

    def __init__(self, spooled: Spooled, connect: Callable[[StoreUrl], Objects]) -> None:
        self._spooled = spooled
        self._connect = connect
        self._objects: Objects | None = None
        self._chief = True
        self._inbox: Inbox | None = None
        self._whole: dict[str, tuple[int, int]] = {}
        """Size and time of change of each file as it was sent."""
        self._ranges: dict[str, list[ByteRange]] = {}
        """Objects of each live segment."""
        self._run_sent_ns = 0

    @property
    def waiting_bytes(self) -> int:
        """Bytes that are not on the object store yet; what is known of it without asking it."""
        return sum(_size(file, part) for file in walk(self._spooled.path) for part in self._left(file))

    def step(self, now_ns: int) -> Sent:
        """Send everything that is new, then fetch requests that readers made.

        ``run.json`` goes last, as it was at the beginning: where it says that the run has ended, all
        of the run is there.

        Parameters
        ----------
        now_ns
            Time by a clock that nobody sets.

        Raises
        ------
        RemoteError
            If something could not be sent; the rest was tried all the same.
        OSError
            If the run directory cannot be read.
        """
        run_json = read_bytes(self._spooled.path / RUN_KEY, MAX_JSON_BYTES)
        objects = self._objects or self._begin(run_json)
        sent = Sent()
        work = [(file, left) for file in walk(self._spooled.path) if (left := self._left(file))]
        with ThreadPoolExecutor(THREADS, thread_name_prefix="tdbg-send") as pool:
            jobs = [pool.submit(self._send, objects, file, left) for file, left in work]
        errors = [error for job in jobs if (error := job.exception()) is not None]
        for (file, _), job in zip(work, jobs, strict=True):
            if job.exception() is None:
                sent.files += 1
                sent.n_bytes += job.result()
                self._drop_ranges(objects, file.key)
        if errors:
            raise errors[0]
        self._send_run(objects, run_json, sent, now_ns)
        if self._inbox is not None:
            self._inbox.fetch()
        return sent

    def _begin(self, run_json: bytes) -> Objects:
        """Find the place, and learn what is there already."""
        url, self._chief = self._spooled.place()
        if self._chief:
            objects, place = claim(url, run_json, self._connect)
            if place != url:
                self._spooled.set_place(place, chief=True)
        else:
            objects = self._connect(url)
        present: dict[str, ObjectInfo] = {}
        for info in objects.walk():
            found = parse_range(info.key)
            if found is not None and info.size == found.end - found.first:
                self._ranges.setdefault(found.segment, []).append(found)
            else:
                present[info.key] = info
        for file in walk(self._spooled.path):
            info_of = present.get(file.key)
            if info_of is not None and _is_same(file, info_of):
                self._whole[file.key] = (file.size, file.modified_ns)
        for segment in [name for name in self._ranges if sealed_key(name) in present]:
            self._drop_ranges(objects, sealed_key(segment))
        self._objects = objects
        self._inbox = Inbox(self._spooled.path, objects)
        return objects

    def _left(self, file: LocalFile) -> list[_Part]:
        """What of a file is to be sent."""
        if file.key == RUN_KEY:
            return []  # last, see `step`
        if not is_live(file.key):
            return [] if self._whole.get(file.key) == (file.size, file.modified_ns) else [None]
        who = read_identity(file)
        if who is None:
            return []
        known = [each for each in self._ranges.get(file.key, ()) if each.identity == who]
        starts = range(reach(known), file.size, RANGE_BYTES)
        return [ByteRange(file.key, who, at, min(at + RANGE_BYTES, file.size)) for at in starts]

    def _send(self, objects: Objects, file: LocalFile, parts: list[_Part]) -> int:
        """Send one file; the bytes sent. Runs in a thread of the pool, one for each file."""
        total = 0
        for part in parts:
            try:
                if part is None:
                    objects.put(file.key, file.path)
                    self._whole[file.key] = (file.size, file.modified_ns)
                else:
                    objects.put(part.key, read_between(file.path, part.first, part.end))
                    self._ranges.setdefault(file.key, []).append(part)
            except FileNotFoundError:  # sealed or deleted since the look: the next one sees it
                return total
            total += _size(file, part)
        return total

    def _drop_ranges(self, objects: Objects, key: str) -> None:
        """Remove the ranges that a sealed segment takes the place of."""
        for segment in [name for name in self._ranges if sealed_key(name) == key]:
            try:
                objects.delete([each.key for each in self._ranges[segment]])
            except StoreError:  # not allowed, or not now: readers prefer the sealed form
                return
            del self._ranges[segment]

    def _send_run(self, objects: Objects, run_json: bytes, sent: Sent, now_ns: int) -> None:
        if not self._chief:
            return
        stamp = (len(run_json), hash(run_json))
        fresh = self._whole.get(RUN_KEY) == stamp
        if fresh and now_ns - self._run_sent_ns < HEARTBEAT_NS:
            return
        objects.put(RUN_KEY, run_json)
        self._whole[RUN_KEY], self._run_sent_ns = stamp, now_ns
        if not fresh:
            sent.files += 1
            sent.n_bytes += len(run_json)


def _is_same(file: LocalFile, info: ObjectInfo) -> bool:
    """Whether an object certainly holds a file as it is."""
    if file.size != info.size:
        return False
    return file.key.endswith(".parquet") or file.modified_ns < info.modified_ns - CLOCK_MARGIN_NS


def _size(file: LocalFile, part: _Part) -> int:
    return file.size if part is None else part.end - part.first
