"""Spans of training phases, recorded in the training thread."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tdbg_lab.clock import EvenClock
from tdbg_lab.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["OWN_PHASES", "PHASES", "PhaseRecorder", "SpanWriter"]

log = logging.getLogger(__name__)

PHASES = (
    *("data", "forward", "backward", "optimizer", "eval"),
    *("copy", "checkpoint", "callback", "logging", "other"),
)
"""Phases every view knows; users add their own."""
OWN_PHASES = frozenset({"data", "forward", "backward", "optimizer", "eval", "capture", "boosting", "step"})
"""Phases that follow each other in the training thread; all others hold them, or lie within."""

_MAX_DEPTH = 64
_LEAST_SLEEP_NS = 100_000_000


class SpanWriter(Protocol):
    """What spans are written through: `tdbg_lab.store.RankWriter`."""

    def append_spans(  # noqa: PLR0917 - the writer's own order
        self,
        names: Sequence[str],
        phases: Sequence[str],
        start_ns: Sequence[int],
        duration_ns: Sequence[int],
        steps: Sequence[int],
        device: str = "",
        thread: int = 0,
    ) -> None:
        """Write one batch of spans."""


_Open: TypeAlias = "tuple[str, str, int, int]"
"""Name, phase, start and step of a span. (A named tuple takes a call to make, at each boundary of a step.)"""


class PhaseRecorder:
    """Record what the training thread does when, in batches.

    Spans nest. An inner `begin` does not end the outer span; `switch` goes from one phase of a step to the
    next at the same instant. One recorder belongs to one thread.

    Nothing is raised. What cannot be written is missing: the writer tells of it and goes on when it can. When
    it fails otherwise, recording ends and `error` says why.

    Parameters
    ----------
    writer
        Where the batches go.
    flush_after_s
        A batch is written at the first `end` after its oldest span is this old, in seconds.
    capacity
        A batch is written at the latest when it has this many spans.
    """

    def __init__(self, writer: SpanWriter, *, flush_after_s: float = 0.5, capacity: int = 4096) -> None:
        self.error: Exception | None = None
        """Why recording ended early, or None."""
        self._writer = writer
        self._flush_after_ns = int(flush_after_s * 1e9)
        self._capacity = capacity
        self._thread = threading.get_native_id()
        self._open: list[_Open] = []
        self._done: list[tuple[str, str, int, int, int]] = []
        """Name, phase, start, duration and step of each."""
        self._oldest = 0  # perf counter at the first buffered span, ns
        self._clock = EvenClock()
        self._epoch = self._clock.now_ns() - time.perf_counter_ns()

    @property
    def current(self) -> str | None:
        """Phase of the innermost open span, or None."""
        return self._open[-1][1] if self._open else None

    @property
    def since(self) -> int:
        """When the innermost open span began, by `time.perf_counter_ns`; 0 without any."""
        return self._open[-1][2] if self._open else 0

    def begin(self, phase: str, step: int = -1, *, name: str = "") -> None:
        """Begin a span; `step` -1 says it is not known, `name` defaults to the phase."""
        if self.error is not None:
            return
        if len(self._open) >= _MAX_DEPTH:  # ends were lost, say by exceptions in the model
            del self._open[0]
        self._open.append((name or phase, phase, time.perf_counter_ns(), step))

    def end(self, phase: str | None = None) -> None:
        """End the innermost span, or the innermost one of `phase` and all within it.

        Does nothing when no such span is open.
        """
        now = time.perf_counter_ns()
        if phase is not None:
            if all(span[1] != phase for span in self._open):
                return
            while self._open[-1][1] != phase:
                self._finish(self._open.pop(), now)
        if self._open:
            self._finish(self._open.pop(), now)

    def switch(self, phase: str, step: int = -1) -> None:
        """Go on to a phase of the step: the innermost span ends if it is one of `OWN_PHASES`.

        Others, such as those that the user opened, stay open around it.
        """
        if self.error is not None:
            return
        stack, now = self._open, time.perf_counter_ns()
        if stack and stack[-1][1] in OWN_PHASES:
            self._finish(stack.pop(), now)
        elif len(stack) >= _MAX_DEPTH:
            del stack[0]
        stack.append((phase, phase, now, step))

    def split(self, phase: str, at: int, step: int = -1) -> None:
        """Of the innermost span, if it is one of `OWN_PHASES`, what came after `at` was another phase.

        Both end now: a `switch` to the next phase follows.

        Parameters
        ----------
        at
            By `time.perf_counter_ns`.
        """
        if self.error is not None or not self._open or self._open[-1][1] not in OWN_PHASES:
            return
        open_span, now = self._open.pop(), time.perf_counter_ns()
        at = max(at, open_span[2])
        self._finish(open_span, at)
        self.ended(phase, at, now, step)

    def end_all(self) -> None:
        """End every open span: what a step boundary does after lost ends."""
        now = time.perf_counter_ns()
        while self._open:
            self._finish(self._open.pop(), now)

    def add(self, phase: str, start_ns: int, duration_ns: int, step: int = -1, *, name: str = "") -> None:
        """Add a span that is over; `start_ns` since the Unix epoch."""
        if self.error is None:
            self._append((name or phase, phase, start_ns, duration_ns, step), time.perf_counter_ns())

    def ended(self, phase: str, begin: int, now: int, step: int = -1) -> None:
        """Add a span from `begin` to `now`, by `time.perf_counter_ns`."""
        if self.error is None:
            self._append((phase, phase, self._epoch + begin, now - begin, step), now)

    @contextmanager
    def phase(self, phase: str, step: int = -1, *, name: str = "") -> Iterator[None]:
        """Record what runs within the ``with`` block."""
        self.begin(phase, step, name=name)
        try:
            yield
        finally:
            self.end(phase)

    def flush(self) -> None:
        """Write what has ended."""
        done, self._done = self._done, []
        if not done or self.error is not None:
            return
        names, phases, starts, durations, steps = zip(*done, strict=True)
        try:
            self._writer.append_spans(names, phases, starts, durations, steps, thread=self._thread)
        except StoreError as error:  # the writer tries again by itself
            log.debug("Phases are missing: %s", error)
        except Exception as error:  # noqa: BLE001 - whatever it is, training goes on
            self.error = error
            self._open.clear()
            log.warning("Phases are no longer recorded: %s", error)
        self._follow_sleep()

    def close(self) -> None:
        """End and write everything. Idempotent."""
        self.end_all()
        self.flush()

    def _finish(self, span: _Open, now: int) -> None:
        name, phase, start, step = span
        self._append((name, phase, self._epoch + start, now - start, step), now)

    def _append(self, span: tuple[str, str, int, int, int], now: int) -> None:
        done = self._done
        if not done:
            self._oldest = now
        done.append(span)
        if now - self._oldest >= self._flush_after_ns or len(done) >= self._capacity:
            self.flush()

    def _follow_sleep(self) -> None:
        """The performance counter stands still while the machine sleeps, samples do not."""
        epoch = self._clock.now_ns() - time.perf_counter_ns()
        if epoch - self._epoch > _LEAST_SLEEP_NS:
            self._epoch = epoch
