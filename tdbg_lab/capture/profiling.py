"""Profiles on demand while training goes on: begun and ended at step boundaries, written off the thread."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from tdbg_lab.background import start_thread
from tdbg_lab.capture import companions
from tdbg_lab.errors import ConflictError, TdbgError
from tdbg_lab.profiler.recording import ProfileRecording, new_folder
from tdbg_lab.profiler.window import ProfileWindow
from tdbg_lab.store import RankWriter, Request, answer

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from tdbg_lab.capture.engine import Engine

__all__ = ["Profiling"]

_log = logging.getLogger("tdbg_lab")

_MAX_WAITING = 8
_SAVE_S = 60.0
"""How long the end of a capture waits for files that are being written, seconds."""


class _Planned(NamedTuple):
    """A profile that waits for its step or its time."""

    window: ProfileWindow
    request: Request | None
    start_s: float | None
    """Seconds since 1970."""

    def is_due(self, step: int) -> bool:
        begun = self.window.start is None or self.window.start <= step
        return begun and (self.start_s is None or self.start_s <= time.time())


class Profiling:
    """The profiles of one handle: one at a time, the others wait for their step.

    Attributes
    ----------
    active
        Whether `at_step_end` has something to do.
    """

    def __init__(self, engine: Engine) -> None:
        self.active = False
        self._engine = engine
        self._waiting: list[_Planned] = []
        self._current: tuple[ProfileRecording, Request | None] | None = None
        self._saving: list[threading.Thread] = []
        config = engine.plan.config
        if engine.open:
            if config.profile_steps is not None:
                first, end = config.profile_steps
                self._plan(ProfileWindow(steps=end - first, start=first), f"profile_steps ({first}, {end})")
            for one in config.profiles:
                window = ProfileWindow(**one.model_dump(exclude={"start_s"}))
                self._plan(window, f"a profile of {window}", one.start_s)

    def _plan(self, window: ProfileWindow, name: str, start_s: float | None = None) -> None:
        """Make a profile that the configuration names."""
        step = self._engine.step
        if window.start is not None and window.start < step:
            self._engine.guard.notice("profile", f"{name} is not profiled: the run goes on with step {step}")
            return
        self._add(window, None, start_s)

    def _add(self, window: ProfileWindow, request: Request | None, start_s: float | None = None) -> None:
        self._waiting.append(_Planned(window, request, start_s))
        self.active = True

    def follow(self, request: Request) -> None:
        """Take up a request, or refuse it in its file. Never raises."""
        guard, control = self._engine.guard, self._engine.control
        try:
            window = ProfileWindow.of(request.arguments)
            step = self._engine.step
            if window.start is not None and window.start < step:
                raise ConflictError(f"Step {window.start} is over: the run is at step {step}.")
            if len(self._waiting) >= _MAX_WAITING:
                raise ConflictError(f"{_MAX_WAITING} profiles wait for their steps already.")
        except TdbgError as error:
            guard.run("control", control.refuse, request, str(error))
            return
        guard.run("control", control.accept, request)
        self._add(window, request)

    def at_step_end(self) -> None:
        """A step is over, or training is about to begin: go on with what is being recorded."""
        step = self._engine.step
        if self._current is not None:
            recording, _ = self._current
            recording.at_step(step)
            if recording.over:
                self._save()
        if self._current is None:
            self._begin(step)
        self.active = bool(self._waiting or self._current)

    def detach(self) -> None:
        """End what is being recorded, and wait until it is written. Idempotent."""
        if self._current is not None:
            self._current[0].end(self._engine.step)
            self._save()
        for window, request, _ in self._waiting:
            self._tell(request, "refused", f"training ended before {window} could be profiled")
        self._waiting.clear()
        self.active = False
        for thread in self._saving:
            thread.join(_SAVE_S)
        self._saving.clear()

    def _begin(self, step: int) -> None:
        due = next((one for one in self._waiting if one.is_due(step)), None)
        if due is None:
            return
        self._waiting.remove(due)
        window, request, _ = due
        writer = self._engine.writer
        if not isinstance(writer, RankWriter):  # this rank writes nothing
            return
        try:
            folder = new_folder(writer.path, step)
        except (OSError, TdbgError) as error:
            self._tell(request, "refused", str(error))
            return
        recording = ProfileRecording(folder, window, self._engine.recorder.clock)
        recording.begin(step)
        self._current = recording, request
        if recording.over:
            self._save()

    def _save(self) -> None:
        """Write what was recorded, in a thread."""
        if self._current is None:
            return
        (recording, request), self._current = self._current, None
        phases = self._engine.phases
        if phases is not None:
            phases.add("profile", recording.start_ns, recording.duration_ns, recording.first_step)
        thread = start_thread(partial(self._write, recording, request), "tdbg-lab profile")
        if thread is None:
            with suppress(OSError):  # an empty folder is a profile that is being recorded
                recording.folder.rmdir()
            self._tell(request, "refused", "The profile is not written: no more threads may be started.")
            return
        self._saving = [one for one in self._saving if one.is_alive()] + [thread]

    def _write(self, recording: ProfileRecording, request: Request | None) -> None:
        try:
            recording.save()
            companions.start_digest(recording.folder)
        except Exception as error:  # noqa: BLE001 - a thread of ours beside training
            self._tell(request, "refused", f"The profile cannot be written: {error}")
            return
        problems = "; ".join(recording.problems)
        where = _shown(recording.folder)
        if not recording.recorded:
            self._tell(request, "refused", f"Nothing was profiled: {problems}.")
            return
        said = f"profiled {', '.join(recording.recorded)}: {where}"
        self._tell(request, "done", f"{said} ({problems})" if problems else said, recording.folder.name)

    def _tell(
        self, request: Request | None, state: Literal["done", "refused"], text: str, profile: str = ""
    ) -> None:
        """Say what became of a profile: to whoever asked, or to the log. Any thread."""
        if request is None:
            _log.log(
                logging.INFO if state == "done" and "(" not in text else logging.WARNING, "tdbg-lab: %s", text
            )
        elif self._engine.chief:
            try:
                result = {"profile": profile} if profile else None
                answer(self._engine.folder.path, request.id, state, text, result=result)
            except TdbgError as error:
                _log.warning("tdbg-lab: a request cannot be answered: %s", error)


def _shown(folder: Path) -> str:
    return "/".join(folder.parts[-3:])
