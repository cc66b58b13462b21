"""The clocks of a training, and which of its steps they run over."""

from __future__ import annotations

import time

import numpy as np

OURS = {"tdbg-1": 1, "tdbg-10": 10}
"""Arms with tdbg-lab, and the distance of the steps they save."""
WARM_UP = 11
"""Steps before the clocks start: 0 and 10 are saved in every arm."""
CLOCKS = ("process", "thread", "wall")


def clocks():
    """Seconds of `CLOCKS`: CPU of the process, CPU of the thread that trains, wall."""
    return np.array([time.process_time(), time.thread_time(), time.perf_counter()])


class Stopwatch:
    """Runs from the end of the warm-up to the last step of a block."""

    def __init__(self, steps):
        self.steps = steps
        self.done = 0

    def step(self):
        """A step is over."""
        self.done += 1
        if self.done == WARM_UP:
            self._start = clocks()
        elif self.done == WARM_UP + self.steps:
            self.spent = (clocks() - self._start) / self.steps


def no_problems(handle):
    """Raise what capture could not do: its figures would be too good."""
    if handle.problems:
        raise RuntimeError(handle.problems)
