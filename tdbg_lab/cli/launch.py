"""Runs a program, watched; says at the end what came of it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import TdbgError, TrainingStopped

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from tdbg_lab.capture.auto import AutoWatch
    from tdbg_lab.cli.program import Program

__all__ = ["Launch"]

FAILED = 1


@dataclass(frozen=True, slots=True)
class Launch:
    """A program that is about to run. Called, it runs it and gives the exit code."""

    program: Program
    settings: Mapping[str, Any]
    trainings: int
    """How many to capture at most."""
    quiet: bool = False

    def __call__(self) -> int:
        """Run the program.

        Raises
        ------
        SystemExit, KeyboardInterrupt
            As the program raised them: the interpreter knows what they mean.
        ConfigError, NotFoundError
            A setting is wrong, or there is no such program; nothing ran.
        """
        from tdbg_lab.capture.switch import is_off

        watch = None
        try:
            run = self.program.prepare()
            watch = None if is_off() else self._watch()
            run()
        except BaseException as error:
            if isinstance(error, TdbgError) and watch is None:  # nothing ran
                raise
            return self._failed(watch, error)
        self._end(watch, None)
        return 0

    def _failed(self, watch: AutoWatch | None, error: BaseException) -> int:
        """The program raised `error`; the exit code."""
        self._end(watch, error)
        if isinstance(error, SystemExit):
            raise error
        return _report(error)

    def _watch(self) -> AutoWatch:
        from tdbg_lab.capture.auto import AutoWatch

        watch = AutoWatch(self.settings, most=self.trainings)
        watch.start()
        return watch

    def _end(self, watch: AutoWatch | None, error: BaseException | None) -> None:
        if watch is None or not watch.active:  # a forked child of the program ends by coming back to us
            return
        watch.stop(error)
        if not self.quiet and int(os.environ.get("RANK", "0") or 0) == 0:
            _say(watch.summary())


def _report(error: BaseException) -> int:
    """Show an exception as the interpreter would, without frames of ours; the exit code."""
    if isinstance(error, TrainingStopped):
        _say(f"{error}.")
        return FAILED
    _strip(error)
    tail = error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, tail
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    sys.excepthook(type(error), error, tail)
    if isinstance(error, KeyboardInterrupt):
        sys.excepthook = _quiet  # it has been shown; the interpreter ends as after an interrupt
        raise error
    return FAILED


def _quiet(*_error: object) -> None:
    """An exception hook that shows nothing."""


def _strip(error: BaseException) -> None:
    """Take our frames out of the traceback of an exception, its causes and its contexts."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = _without_our_frames(one.__traceback__)
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions


def _without_our_frames(tail: TracebackType | None) -> TracebackType | None:
    theirs = []
    while tail is not None:
        name = str(tail.tb_frame.f_globals.get("__name__", ""))
        if not f"{name}.".startswith("tdbg_lab."):
            theirs.append(tail)
        tail = tail.tb_next
    for one, following in zip(theirs, [*theirs[1:], None], strict=False):
        one.tb_next = following
    return theirs[0] if theirs else None


def _say(text: str) -> None:
    with suppress(AttributeError, OSError, ValueError):  # the program may have closed them, or had none
        sys.stdout.flush()
        sys.stderr.write(f"tdbg: {text}\n")
