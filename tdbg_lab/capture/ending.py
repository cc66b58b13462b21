"""How a run ended, and what to do with one that nobody detached."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.errors import CaptureError, TrainingStopped
from tdbg_lab.records import RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.sessions import Session

__all__ = ["Circumstances", "left_behind", "not_reached", "outcome"]

_STOPS = {
    "optuna.exceptions.TrialPruned": "pruned",
    "lightning.pytorch.utilities.exceptions.SIGTERMException": "terminated",
    "pytorch_lightning.utilities.exceptions.SIGTERMException": "terminated",
}
"""Exceptions by which libraries stop a training that did not fail, and what a run says of them."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What was the case when the handle was made."""

    pid: int
    interactive: bool
    """In a notebook or a prompt an exception ends a cell, not the process."""
    end_is_told: bool = False
    """A library says when training has ended: where it did not, an exception ended it."""

    @classmethod
    def now(cls, *, end_is_told: bool = False) -> Circumstances:
        """The circumstances of this moment."""
        return cls(os.getpid(), hasattr(sys, "ps1") or "IPython" in sys.modules, end_is_told)


def outcome(error: BaseException | None, *, stopped: str | None = None) -> tuple[RunStatus, str | None]:
    """Status of a run that ended with `error`, and the text that says why.

    `stopped` is the reason of the stop request that training followed by itself, if there was one.
    """
    if error is None:
        return (RunStatus.FINISHED, None) if stopped is None else (RunStatus.STOPPED, stopped)
    if isinstance(error, TrainingStopped):
        return RunStatus.STOPPED, error.reason
    for kind in type(error).__mro__:
        if (reason := _STOPS.get(f"{kind.__module__}.{kind.__name__}")) is not None:
            return RunStatus.STOPPED, reason
    if isinstance(error, KeyboardInterrupt):
        return RunStatus.STOPPED, "interrupted"
    if isinstance(error, SystemExit) and not error.code:
        return RunStatus.FINISHED, None
    return RunStatus.FAILED, f"{type(error).__name__}: {error}"[:1000]


def not_reached() -> CaptureError:
    """What a training ended with that something nobody told us of has ended."""
    return CaptureError("the training did not reach its end")


def left_behind(engine: Engine, sessions: Sequence[Session], circumstances: Circumstances) -> None:
    """Close the run of a handle that died or that the end of the process found attached.

    Only the status depends on this, never the data: those are written already.
    """
    if os.getpid() != circumstances.pid:
        return
    error = None if circumstances.interactive else getattr(sys, "last_value", None)
    if error is None and circumstances.end_is_told:
        error = not_reached()
    for session in sessions:
        engine.guard.run("detach", session.detach)
    engine.finish(*outcome(error))
