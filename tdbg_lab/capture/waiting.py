"""Numbers of steps that hold nothing else: they wait for those of the next steps."""

from __future__ import annotations

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
    steps: list[tuple[int, int, list[TensorKey], list[float]]] = field(default_factory=list)
    """Step, time, keys and numbers of each: one entry, so that an interrupt leaves it whole or out."""
    late: list[tuple[int, int, LateNumbers]] = field(default_factory=list)
    """Step, time, and numbers that a device will give."""
    n_numbers: int = 0

    def add(
        self,
        step: int,
        keys: list[TensorKey],
        values: list[float],
        late: list[LateNumbers],
        *,
        now: int,
        since_ns: int,
    ) -> bool:
        """Add a step; whether to write it all `now`, when something was written last at `since_ns`."""
        self.steps.append((step, now, keys, values))
        if late:
            self.late += [(step, now, one) for one in late]
        self.n_numbers += len(keys)
        if self.n_numbers + len(self.late) >= _MAX_WAITING:
            return True
        n_steps = len(self.steps)
        return n_steps & (n_steps - 1) == 0 and now - since_ns >= _WAIT_NS

    def columns(
        self, tickets: dict[Source, Ticket]
    ) -> tuple[list[int], list[int], list[TensorKey], list[float]]:
        """Step, time, key and value of each number, with what the devices have given, by step."""
        late = [(step, now, *numbers.read(tickets)) for step, now, numbers in self.late]
        entries = sorted([*self.steps, *late], key=itemgetter(0)) if late else self.steps
        steps: list[int] = []
        time_ns: list[int] = []
        all_keys: list[TensorKey] = []
        all_values: list[float] = []
        for step, now, keys, values in entries:
            steps += [step] * len(keys)
            time_ns += [now] * len(keys)
            all_keys += keys
            all_values += values
        return steps, time_ns, all_keys, all_values
