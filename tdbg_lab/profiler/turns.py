"""Trainings of one process that take turns: a step of one is no loading of data for the other."""

from __future__ import annotations

from threading import get_ident
from time import perf_counter_ns
from typing import Protocol
from weakref import WeakSet

from tdbg_lab.profiler import interludes

__all__ = ["Turns"]

_MOST = 32
"""Steps of others that are kept apart between two of one's own; of more, the last one grows."""

_all: WeakSet[Turns] = WeakSet()


class Training(interludes.Training, Protocol):
    """The training, as its turns know it: `tdbg_lab.capture.engine.Engine`."""

    step_began_ns: int
    """When the first forward of the step began, by `time.perf_counter_ns`; 0 when none was seen."""


class Turns:
    """What other trainings do in the thread of this one while it waits for its next forward.

    Each of their steps becomes a span of phase ``other`` within the phase ``data``, once this training
    goes on, or ends: one that is over may wait for long.
    """

    def __init__(self, training: Training) -> None:
        self._training = training
        self._thread = get_ident()
        self._theirs: list[tuple[int, int]] = []
        """Begin and end of steps of others, by `time.perf_counter_ns`, ascending."""
        _all.add(self)

    def at_step_end(self) -> None:
        """A step is complete: tell what came before it, and the others that it took place."""
        if self._theirs:
            self._training.guard.run("spans", self._tell, self._training.step - 1)
        if len(_all) == 1:
            return
        self._thread = get_ident()
        begin, now = self._training.step_began_ns, perf_counter_ns()
        if begin:
            for other in list(_all):
                if other is not self:
                    other.step_of_another(begin, now)

    def step_of_another(self, begin: int, end: int) -> None:
        """Another training took a step; times by `time.perf_counter_ns`."""
        phases = self._training.phases
        if phases is None or phases.current != "data" or get_ident() != self._thread:
            return
        begin = max(begin, phases.since)
        if len(self._theirs) < _MOST:
            self._theirs.append((begin, end))
        else:
            self._theirs[-1] = self._theirs[-1][0], end

    def detach(self) -> None:
        """Tell what is left. Idempotent."""
        _all.discard(self)
        self._tell(self._training.step)

    def forget(self) -> None:
        """Tell nothing any more: this is a forked child."""
        _all.discard(self)
        self._theirs.clear()

    def _tell(self, step: int) -> None:
        theirs, self._theirs = self._theirs, []
        phases = self._training.phases
        if phases is not None:
            for begin, end in theirs:
                phases.ended("other", begin, end, step)
