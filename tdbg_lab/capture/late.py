"""What a device has still to measure: rows and numbers that are written once it has.

The training thread queues the measuring and goes on; `LateDesk` writes in a thread of its own, in the order
in which everything was gathered, when the device is through. Steps that it is still about are in flight.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

from tdbg_lab.background import start_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tdbg_lab.records import StatsBlock, TensorKey

    Told = Callable[[NDArray[Any]], tuple[Sequence[TensorKey], Sequence[float]]]
    """What numbers of a device say: keys, and the value of each."""

__all__ = ["LateDesk", "LateNumbers", "LateRaw", "LateRows", "Source", "Ticket"]

_QUICK_S, _SLOW_S = 0.001, 0.005
_CLOSE_S = 60.0
_IDLE_S = 5.0
_PATIENCE_S, _BEHIND = 0.05, 4
"""How long a job that can be written waits for a calm moment, and jobs beyond which none does."""


class Results(Protocol):
    """What a device has given: `tdbg_lab.stats.device.Results`."""

    @property
    def block(self) -> StatsBlock:
        """Rows."""

    @property
    def numbers(self) -> NDArray[Any]:
        """Numbers, float64."""

    @property
    def values(self) -> NDArray[Any]:
        """Copies of tensors, as bytes."""


class Ticket(Protocol):
    """What was sent at one time: `tdbg_lab.stats.device.Ticket`."""

    def arrived(self) -> bool:
        """Whether it can be read, from any thread."""

    def wait(self, timeout_s: float) -> None:
        """Wait until it can be read, or give it up."""

    def read(self) -> Results:
        """What has arrived."""


class Source(Protocol):
    """A device that measures: `tdbg_lab.stats.device.DeviceBuffer`."""

    dropped: int
    """Rows and numbers that it could not take."""

    def send(self) -> Ticket | None:
        """Send what was added; None when nothing was."""


@dataclass(slots=True)
class LateRows:
    """Rows of one place that one source is about to measure, in their order."""

    keys: list[TensorKey] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    """Rows that had been measured at once before each call."""
    lengths: list[int] = field(default_factory=list)
    """Rows of each call."""


@dataclass(slots=True)
class LateNumbers:
    """Numbers of one place that a source will give."""

    source: Source
    first: int
    n: int
    told: Told

    def read(self, tickets: dict[Source, Ticket]) -> tuple[Sequence[TensorKey], Sequence[float]]:
        """Keys and values, once they have arrived; none of what is lost."""
        numbers = tickets[self.source].read().numbers[self.first : self.first + self.n]
        return self.told(numbers) if len(numbers) == self.n else ((), ())


@dataclass(slots=True)
class LateRaw:
    """A raw value that a source will give."""

    source: Source
    first: int
    """Place of its first byte."""
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    ticket: Ticket | None = None
    """With which it comes; None until it is sent."""

    @property
    def nbytes(self) -> int:
        """Its size."""
        return prod(self.shape) * self.dtype.itemsize

    def read(self) -> NDArray[Any] | None:
        """The value, once it has arrived; None when the device could not give it."""
        assert self.ticket is not None  # noqa: S101 - it was sent
        values = self.ticket.read().values[self.first : self.first + self.nbytes]
        return values.view(self.dtype).reshape(self.shape).copy() if len(values) == self.nbytes else None


@dataclass(slots=True)
class _Job:
    tickets: list[Ticket]
    write: Callable[[], None]

    def arrived(self) -> bool:
        return all(ticket.arrived() for ticket in self.tickets)


class LateDesk:
    """Writes jobs in their order, each soon after its tickets have arrived.

    To write takes Python, which the training thread may want at the same time: so a job waits a little for
    the next backward pass, which does without. The thread asks no driver, so that it disturbs nobody, and
    ends when there was nothing to do for a while.
    """

    def __init__(self) -> None:
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._calm = self._closing = False

    def calm(self, *, now: bool) -> None:
        """Say whether nobody else wants Python now."""
        with self._changed:
            self._calm = now
            self._changed.notify_all()

    def put(self, tickets: Iterable[Ticket], write: Callable[[], None]) -> None:
        """Take a job; returns at once.

        Raises
        ------
        Exception
            Once, what an earlier job failed with.
        """
        with self._changed:
            self._jobs.append(_Job(list(tickets), write))
            if self._thread is None:
                self._thread = start_thread(self._run, "tdbg-late")  # else the next job tries again
            alone = self._thread is None
            self._changed.notify_all()
        if alone:
            self._write_arrived()
        self._tell()

    def close(self) -> None:
        """Wait for the devices, and until everything is written; a minute at most.

        Raises
        ------
        Exception
            As `put`.
        """
        deadline = time.monotonic() + _CLOSE_S
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            waiting = [ticket for job in self._jobs for ticket in job.tickets]
            alone = self._thread is None
        for ticket in waiting:
            ticket.wait(max(0.0, deadline - time.monotonic()))
        if alone:
            self._write_arrived()
        with self._changed:
            self._changed.wait_for(lambda: not self._jobs, _CLOSE_S)
            self._closing = False
        self._tell()

    def _tell(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        while (job := self._next()) is not None:
            pause = _QUICK_S
            while not job.arrived():
                time.sleep(pause)
                pause = min(2 * pause, _SLOW_S)
            with self._changed:
                self._changed.wait_for(self._may_write, _PATIENCE_S)
            self._write(job)
            del job

    def _write_arrived(self) -> None:
        """Write here what has arrived, where there is no thread for it: else it would pile up."""
        while self._jobs and self._jobs[0].arrived():
            self._write(self._jobs[0])

    def _write(self, job: _Job) -> None:
        try:
            job.write()
        except Exception as error:  # noqa: BLE001 - told by the next `put`
            self._error = error
        finally:  # of an interrupt, too: nothing is written twice
            with self._changed:
                self._jobs.popleft()
                self._changed.notify_all()

    def _may_write(self) -> bool:
        return self._calm or self._closing or len(self._jobs) > _BEHIND

    def _next(self) -> _Job | None:
        """The next job; None, and the thread is no more, when none came for a while."""
        with self._changed:
            if not self._changed.wait_for(lambda: bool(self._jobs), _IDLE_S):
                self._thread = None
                return None
            return self._jobs[0]
