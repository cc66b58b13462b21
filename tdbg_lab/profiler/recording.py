"""A profile on demand: its passes over training, one after the other, and the files they leave."""

from __future__ import annotations

import logging
import shutil
import time
from typing import TYPE_CHECKING, Protocol

from tdbg_lab.errors import ConflictError, StoreError
from tdbg_lab.profiler.functions import CallPass, SamplingPass
from tdbg_lab.profiler.operators import OperatorPass
from tdbg_lab.store.layout import write_json
from tdbg_lab.store.profiles import FACTS, MAX_PROFILES, PROFILES

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.clock import EvenClock
    from tdbg_lab.profiler.window import ProfileWindow

__all__ = ["Pass", "ProfileRecording", "new_folder"]

log = logging.getLogger("tdbg_lab")

_MOST_SECONDS = {"operators": 60.0}
"""A pass whose memory grows with time ends at the end of the step in which this is over, seconds."""
_MIN_FREE_BYTES = 2 * 2**30


class Pass(Protocol):
    """One profiler, over some steps."""

    what: str
    """What it records, plural."""

    def start(self, step: int) -> None:
        """Begin, with `step`; may raise."""

    def step(self, step: int) -> None:
        """`step` begins."""

    def stop(self) -> None:
        """End."""

    def save(self, folder: Path) -> None:
        """Write files; any thread."""


def new_folder(rank_path: Path, step: int) -> Path:
    """Make the folder of a profile that begins with `step`.

    Raises
    ------
    ConflictError
        There are too many already, or the disk is almost full.
    OSError
        It cannot be made.
    """
    root = rank_path / PROFILES
    root.mkdir(exist_ok=True)
    there = {one.name for one in root.iterdir()}
    if len(there) >= MAX_PROFILES:
        raise ConflictError(
            f"The run has {len(there)} profiles already; delete some in {root.parent.name}/{root.name}."
        )
    if shutil.disk_usage(root).free < _MIN_FREE_BYTES:
        raise ConflictError("Less than 2 GiB are free where the run is kept: too little for a trace.")
    name = f"step-{step:012d}"
    names = [name, *(f"{name}-{n}" for n in range(2, MAX_PROFILES + 2))]
    folder = root / next(one for one in names if one not in there)
    folder.mkdir()
    return folder


class ProfileRecording:
    """What is recorded of one window. Everything but `save` belongs to the training thread.

    A pass that fails is left out, and `problems` says why; nothing is raised.
    """

    def __init__(self, folder: Path, window: ProfileWindow, clock: EvenClock) -> None:
        self.folder = folder
        self._clock = clock
        self.window = window
        self.problems: list[str] = []
        self.over = False
        """Whether every pass has ended."""
        self.first_step = self.last_step = -1
        self.start_ns = 0
        self.duration_ns = 0
        self._waiting: list[Pass] = [OperatorPass(window)] if window.operators else []
        if window.python != "off":
            self._waiting.append(SamplingPass(window) if window.python == "sampling" else CallPass(window))
        self._pass: Pass | None = None
        self._done: list[Pass] = []
        self._facts: list[dict[str, object]] = []
        self._began_step = 0
        self._began_ns = 0

    def begin(self, step: int) -> None:
        """Begin with `step`."""
        self.first_step, self.start_ns = step, self._clock.now_ns()
        self._next(step)

    def at_step(self, step: int) -> None:
        """`step` begins, the one before it has ended."""
        if self._pass is None:
            return
        if not self._is_full(step):
            self._pass.step(step)
            return
        self._stop(step)
        self._next(step)

    def end(self, step: int) -> None:
        """End before the window does: `step` never began."""
        cut = self._pass is not None and not self._is_full(step)
        self._stop(step)
        if cut or self._waiting:
            self.problems.append(f"training ended before {self.window} were recorded")
        self._waiting.clear()
        self._close(step)

    def _is_full(self, step: int) -> bool:
        took_s = (time.perf_counter_ns() - self._began_ns) / 1e9
        most_s = _MOST_SECONDS.get(self._pass.what if self._pass else "", float("inf"))
        if self.window.steps is None:
            return took_s >= min(self.window.seconds or 0.0, most_s)
        done = step - self._began_step
        if done < self.window.steps and took_s >= most_s and done > 0:
            self.problems.append(f"operators of {done} steps only: it took longer than {most_s:g} s")
            return True
        return done >= self.window.steps

    def _next(self, step: int) -> None:
        """Start the next pass that can be started."""
        while self._waiting:
            one = self._waiting.pop(0)
            try:
                one.start(step)
            except Exception as error:
                self.problems.append(f"no {one.what}: {error}"[:500])
                log.debug("A profiler did not start", exc_info=True)
                continue
            self._pass, self._began_step, self._began_ns = one, step, time.perf_counter_ns()
            return
        self._close(step)

    def _stop(self, step: int) -> None:
        one, self._pass = self._pass, None
        if one is None:
            return
        took_ns = time.perf_counter_ns() - self._began_ns
        try:
            one.stop()
        except Exception as error:  # noqa: BLE001
            self.problems.append(f"no {one.what}: {error}"[:500])
            return
        self._done.append(one)
        self._facts.append(
            {
                "what": one.what,
                "first_step": self._began_step,
                "last_step": step - 1,
                "duration_ns": took_ns,
            }
        )

    def _close(self, step: int) -> None:
        self.over = True
        self.last_step = max(step - 1, self.first_step)
        self.duration_ns = self._clock.now_ns() - self.start_ns

    @property
    def recorded(self) -> list[str]:
        """What was recorded, with its steps, in words."""
        return [f"{one['what']} of {_steps(one)}" for one in self._facts]

    def save(self) -> None:
        """Write the files of all passes, and `FACTS`. Any thread; slow.

        Raises
        ------
        StoreError
            The facts cannot be written.
        """
        for one in self._done:
            try:
                one.save(self.folder)
            except Exception as error:  # noqa: BLE001 - the others may still be there
                self.problems.append(f"no {one.what}: {error}"[:500])
        facts = {
            "format": 1,
            "window": self.window.dump(),
            "first_step": self.first_step,
            "last_step": self.last_step,
            "start_ns": self.start_ns,
            "duration_ns": self.duration_ns,
            "passes": self._facts,
            "problems": self.problems,
        }
        try:
            write_json(self.folder / FACTS, facts)
        except StoreError:
            shutil.rmtree(self.folder, ignore_errors=True)  # without facts it is one that is being recorded
            raise


def _steps(facts: dict[str, object]) -> str:
    first, last = facts["first_step"], facts["last_step"]
    return f"step {first}" if first == last else f"steps {first} to {last}"
