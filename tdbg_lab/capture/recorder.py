"""Gathers the rows of one forward or step and hands them to the writer in one batch."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tdbg_lab.capture.gathered import Gathered
from tdbg_lab.capture.late import LateDesk, LateNumbers, LateRaw, LateRows
from tdbg_lab.capture.waiting import Waiting
from tdbg_lab.clock import EvenClock
from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.stats.block import empty_block, scalar_block
from tdbg_lab.stats.engine import engine
from tdbg_lab.stats.growing import GrowingBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.guard import Guard, Problem
    from tdbg_lab.capture.late import Source, Ticket, Told
    from tdbg_lab.records import StatsBlock

__all__ = ["Recorder", "RowWriter"]

_MAX_INTERNED = 256
_MAX_PLACES = 8
_MAX_RAW_BYTES = 512 * 1024 * 1024
_TOO_MUCH_RAW = (
    f"raw values are left out where a step has more than {_MAX_RAW_BYTES >> 20} MB of them: save fewer "
    "tensors raw, or a sample of their rows"
)


class RowWriter(Protocol):
    """What rows are written through: `tdbg_lab.store.RankWriter`."""

    @property
    def bytes_written(self) -> int:
        """Bytes handed to the file system so far."""

    @property
    def raw_left_out(self) -> str | None:
        """Why some raw values were not written, though writing goes on."""

    def take_gaps(self) -> list[str]:
        """What is missing where writing failed and goes on since the last call."""

    def append(self, rows: StatsRows) -> None:
        """Write one step."""

    def append_scalars(
        self,
        steps: Sequence[int],
        time_ns: Sequence[int],
        keys: Sequence[TensorKey],
        values: Sequence[float],
        *,
        mode: Mode,
        micro: int = 0,
    ) -> None:
        """Write numbers of several steps."""

    def write_raw(
        self, step: int, tensors: Mapping[str, NDArray[Any]], *, mode: Mode, micro: int = 0
    ) -> None:
        """Write raw values in the background."""

    def close(self) -> None:
        """End and seal."""


class Recorder:
    """Rows and raw values of the current place (step, mode, micro-step).

    Rows leave with `flush_rows`; raw values leave when the place changes, because one place is one
    file.
    """

    __slots__ = (
        "_block_places",
        "_blocks",
        "_desk",
        "_interned",
        "_keys",
        "_late_numbers",
        "_late_rows",
        "_measured_keys",
        "_raw",
        "_raw_bytes",
        "_raw_left_out",
        "_scalar_keys",
        "_scalars",
        "_waiting",
        "_written_ns",
        "clock",
        "measured",
        "micro",
        "mode",
        "sources",
        "step",
        "writer",
    )

    def __init__(self, writer: RowWriter) -> None:
        self.writer = writer
        self.step = 0
        self.mode = Mode.TRAIN
        self.micro = 0
        self.measured = GrowingBlock()
        """Rows that are measured straight into here; who adds some says their keys with `add_measured`."""
        self._measured_keys: list[TensorKey] = []
        self._keys: list[TensorKey] = []
        self._blocks: list[StatsBlock] = []
        self._block_places: list[int] = []
        """Rows that had been measured before each block was added."""
        self._scalar_keys: list[TensorKey] = []
        self._scalars: list[float] = []
        self.sources: dict[Any, Source] = {}
        """Devices that measure without being waited for; who has one adds it here."""
        self._late_rows: dict[Source, LateRows] = {}
        self._late_numbers: list[LateNumbers] = []
        self._desk: LateDesk | None = None
        self._waiting: dict[tuple[Mode, int], Waiting] = {}
        self.clock = EvenClock()
        """Gives records their times."""
        self._written_ns = 0
        self._raw: dict[str, NDArray[Any] | LateRaw] = {}
        self._raw_bytes = 0
        self._raw_left_out: str | None = None
        self._interned: dict[tuple[int, ...], tuple[TensorKey, ...]] = {}

    def leave(self, step: int, mode: Mode, micro: int) -> bool:
        """Go to a new place if nothing was added at this one; whether that was so."""
        if self._measured_keys or self._keys or self._scalar_keys or self._raw:
            return False
        if self._late_rows or self._late_numbers:
            return False
        self.step, self.mode, self.micro = step, mode, micro
        return True

    def move_to(self, step: int, mode: Mode, micro: int) -> None:
        """Write what belongs to the old place and go to a new one; nothing happens at the same place."""
        if (step, mode, micro) == (self.step, self.mode, self.micro):
            return
        try:
            self.flush()
        finally:
            self.step, self.mode, self.micro = step, mode, micro

    def turn_to(self, mode: Mode, micro: int) -> None:
        """What was gathered since the last place was written is of this mode."""
        self.mode, self.micro = mode, micro

    def add(self, keys: list[TensorKey], block: StatsBlock) -> None:
        """Add rows: one key per row of `block`."""
        self._keys += keys
        self._blocks.append(block)
        self._block_places.append(len(self._measured_keys))

    def add_measured(self, keys: list[TensorKey]) -> None:
        """Say the keys of the rows that were added to `measured`; without it they are forgotten."""
        self._measured_keys += keys

    def add_scalar(self, key: TensorKey, value: float) -> None:
        """Add a row with one number."""
        self._scalar_keys.append(key)
        self._scalars.append(value)

    def add_scalars(self, keys: Iterable[TensorKey], values: Iterable[float]) -> None:
        """Add rows with one number each."""
        self._scalar_keys += keys
        self._scalars += values

    def add_late(self, source: Source, keys: list[TensorKey]) -> None:
        """Say the keys of rows that one of `sources` was given to measure, in its order."""
        rows = self._late_rows.get(source)
        if rows is None:
            rows = self._late_rows[source] = LateRows()
        rows.keys += keys
        rows.places.append(len(self._measured_keys))
        rows.lengths.append(len(keys))

    def add_late_numbers(self, source: Source, first: int, n: int, told: Told) -> None:
        """Add rows with one number each that follow from `n` numbers one of `sources` will give.

        Parameters
        ----------
        first
            The place of the first of them.
        told
            Called with them, in another thread: keys and values.
        """
        self._late_numbers.append(LateNumbers(source, first, n, told))

    @property
    def left_out(self) -> int:
        """Rows and numbers that the devices could not take: too much was on its way."""
        return sum(source.dropped for source in self.sources.values())

    def tell_left_out(self, guard: Guard) -> None:
        """Say what is missing, though recording goes on: known of what was handed on so far."""
        for gap in self.writer.take_gaps():
            guard.recovered(gap)
        why = self._raw_left_out or self.writer.raw_left_out
        if why is not None:
            guard.notice("raw values", why)

    def add_raw(self, name: str, values: NDArray[Any] | LateRaw) -> None:
        """Add raw values: an array that is our own copy, or what one of `sources` will give."""
        while name in self._raw:  # a second value of the same name at the same place
            name += "'"
        if self._raw_bytes + values.nbytes > _MAX_RAW_BYTES:
            self._raw_left_out = _TOO_MUCH_RAW
            return
        self._raw[name] = values
        self._raw_bytes += values.nbytes

    def add_problem(self, problem: Problem) -> None:
        """Leave a row that says what failed, so that it is known wherever the run is read."""
        key = TensorKey(f"tdbg/problem/{problem.probe}", Kind.COST)
        self.add([key], empty_block(1, f"step {problem.step}: {problem.message}"))

    def flush_rows(self) -> None:
        """Hand on the rows gathered so far: a batch, or numbers that wait for those of the next steps."""
        if len(self._scalar_keys) != len(self._scalars):  # an interrupt came between: whose is which?
            self._scalar_keys, self._scalars = [], []
        if self._measured_keys or self._keys or self._late_rows:
            tickets = self._send()
            self.flush_waiting(tickets)
            now = self._written_ns = self.clock.now_ns()
            gathered, late, numbers = self._take_rows(), self._late_rows, self._late_numbers
            self._late_rows, self._late_numbers = {}, []
            place = self.step, self.mode, self.micro, now
            self._put(tickets.values(), partial(self._write_rows, place, gathered, late, numbers, tickets))
        elif self._scalars or self._late_numbers:
            where = self.mode, self.micro
            waiting = self._waiting.get(where)
            if waiting is None:
                if len(self._waiting) >= _MAX_PLACES:
                    self.flush_waiting()
                waiting = self._waiting[where] = Waiting(self.mode, self.micro)
            scalars = self._scalar_keys, self._scalars, self._late_numbers
            self._scalar_keys, self._scalars, self._late_numbers = [], [], []
            now = self.clock.now_ns()
            if waiting.add(self.step, *scalars, now=now, since_ns=self._written_ns):
                self.flush_waiting()

    def flush_waiting(self, tickets: dict[Source, Ticket] | None = None) -> None:
        """Write the numbers that wait, once they have come with `tickets`, those sent now by default."""
        if not self._waiting:
            return
        held, self._waiting = self._waiting, {}
        if tickets is None:
            tickets = self._send()
        for waiting in held.values():
            self._written_ns = self.clock.now_ns()
            self._put(tickets.values(), partial(self._write_waiting, waiting, tickets))

    def _write_waiting(self, waiting: Waiting, tickets: dict[Source, Ticket]) -> None:
        steps, time_ns, keys, values = waiting.columns(tickets)
        self.writer.append_scalars(
            steps, time_ns, self._intern(keys), values, mode=waiting.mode, micro=waiting.micro
        )

    def _send(self) -> dict[Source, Ticket]:
        """Have the devices send what was added so far."""
        sent = {source: source.send() for source in self.sources.values()}
        for value in self._raw.values():
            if isinstance(value, LateRaw) and value.ticket is None:
                value.ticket = sent.get(value.source)
        return {source: ticket for source, ticket in sent.items() if ticket is not None}

    def _put(self, tickets: Collection[Ticket], write: Callable[[], None]) -> None:
        """Write at once; or, from the first row of a device on, behind what is still on its way."""
        if self._desk is None:
            if not tickets:
                write()
                return
            self._desk = LateDesk()
        self._desk.put(tickets, write)

    def _write_rows(
        self,
        place: tuple[int, Mode, int, int],
        gathered: Gathered,
        late: dict[Source, LateRows],
        numbers: list[LateNumbers],
        tickets: dict[Source, Ticket],
    ) -> None:
        for source, rows in late.items():
            gathered.add(rows.keys, tickets[source].read().block, rows.places, rows.lengths)
        for one in numbers:
            gathered.add_numbers(*one.read(tickets))
        keys, block = gathered.rows()
        if keys:
            step, mode, micro, now = place
            self.writer.append(StatsRows(step, mode, micro, now, self._intern(keys), block))

    def calm(self, *, now: bool) -> None:
        """Say whether the training thread does without Python now: a good time to write what is late."""
        if self._desk is not None:
            self._desk.calm(now=now)

    def flush(self) -> None:
        """Write rows and raw values of this place."""
        try:
            self.flush_rows()
        finally:
            if self._raw:
                self._flush_raw()

    def flush_all(self) -> None:
        """Write rows and raw values of this place, and the numbers that wait."""
        try:
            self.flush()
        finally:
            self.flush_waiting()

    def _flush_raw(self) -> None:
        late = [value for value in self._raw.values() if isinstance(value, LateRaw)]
        if any(value.ticket is None for value in late):  # they came after the rows
            self.flush_waiting(self._send())
        raw, self._raw, self._raw_bytes = self._raw, {}, 0
        tickets = [value.ticket for value in late if value.ticket is not None]
        self._put(tickets, partial(self._write_raw, self.step, self.mode, self.micro, raw))

    def _write_raw(self, step: int, mode: Mode, micro: int, raw: dict[str, NDArray[Any] | LateRaw]) -> None:
        read = {name: one.read() if isinstance(one, LateRaw) else one for name, one in raw.items()}
        known = {name: values for name, values in read.items() if values is not None}
        self.writer.write_raw(step, known, mode=mode, micro=micro)

    def forget(self) -> None:
        """Leave what was gathered unwritten: nobody will write it any more, and it must not pile up."""
        self.measured.clear()
        self._measured_keys, self._scalar_keys, self._keys = [], [], []
        self._scalars, self._blocks, self._block_places = [], [], []
        self._late_rows, self._late_numbers, self._waiting = {}, [], {}
        self._raw, self._raw_bytes = {}, 0

    def close(self) -> None:
        """Write everything."""
        try:
            self.flush_all()
        finally:
            if self._desk is not None:
                self._desk.close()

    def _take_rows(self) -> Gathered:
        """Take the rows gathered so far, those of devices left out.

        Some of a step are blocks where the kernels are still being compiled.
        """
        measured, keys, scalars, blocks = self.measured, self._measured_keys, self._scalars, self._blocks
        places, all_keys = self._block_places, keys + self._scalar_keys + self._keys
        self._measured_keys, self._scalar_keys, self._keys = [], [], []
        self._scalars, self._blocks, self._block_places = [], [], []
        n_scalars, n_measured = len(scalars), len(measured)
        try:
            if n_measured != len(keys):  # a measurement has broken off; no row under a wrong name
                measured.clear()
                all_keys, n_measured = all_keys[len(keys) :], 0
            if scalars and n_measured and engine().ready:
                engine().add_numbers(measured, scalars)
                scalars = []
            parts = [measured.block()] if n_measured else []
        finally:
            measured.clear()
        if scalars:
            parts.append(scalar_block(scalars))
        lengths = [len(block) for block in blocks]
        return Gathered(all_keys, [*parts, *blocks], n_measured, n_scalars, places, lengths)

    def _intern(self, keys: list[TensorKey]) -> tuple[TensorKey, ...]:
        """The same tuple object for the same keys: the writer caches its encoded form."""
        identity = tuple(map(id, keys))
        known = self._interned.get(identity)
        if known is None:
            if len(self._interned) >= _MAX_INTERNED:
                self._interned.clear()
            known = self._interned[identity] = tuple(keys)  # keeps the ids alive
        return known
