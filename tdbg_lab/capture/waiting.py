"""Numbers of steps that hold nothing else: they wait for those of the next steps."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdbg_lab.capture.late import LateNumbers, Source, Ticket
    from tdbg_lab.records import Mode, TensorKey

__all__ = ["Waiting"]

_MAX_WAITING = 512
_WAIT_NS = 50_000_000


@dataclass(slots=True)
class Waiting:
    """Numbers of steps that hold nothing else, of one mode: written together, as a batch has a price.

    From `_WAIT_NS` on they are written as soon as their steps are a power of two: so the same few tuples
    of keys come again and again, whose encoded form is kept. Where steps take longer, nothing waits.
    """

    mode: Mode
    micro: int
    steps: list[int] = field(default_factory=list)
    time_ns: list[int] = field(default_factory=list)
    keys: list[TensorKey] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    late: list[tuple[int, int, LateNumbers]] = field(default_factory=list)
    """Step, time, and numbers that a device will give."""
    n_steps: int = 0

    def add(
        self,
        step: int,
        keys: list[TensorKey],
        values: list[float],
        late: list[LateNumbers],
        since_ns: int,
    ) -> bool:
        """Add a step; whether to write it all now, when something was written last at `since_ns`."""
        now = time.time_ns()
        self.steps += [step] * len(keys)
        self.time_ns += [now] * len(keys)
        self.keys += keys
        self.values += values
        if late:
            self.late += [(step, now, one) for one in late]
        self.n_steps += 1
        if len(self.keys) + len(self.late) >= _MAX_WAITING:
            return True
        return self.n_steps & (self.n_steps - 1) == 0 and now - since_ns >= _WAIT_NS

    def settle(self, tickets: dict[Source, Ticket]) -> None:
        """Take in what the devices have given, each number among those of its step."""
        rows = list(zip(self.steps, self.time_ns, self.keys, self.values, strict=True))
        for step, now, numbers in self.late:
            rows += [(step, now, key, value) for key, value in zip(*numbers.read(tickets), strict=True)]
        rows.sort(key=itemgetter(0))
        self.late = []
        self.steps, self.time_ns, self.keys, self.values = ([row[i] for row in rows] for i in range(4))  # type: ignore[assignment]
