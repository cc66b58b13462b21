"""The guard every piece of capture runs in: training never sees our failures."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import StoreError, TrainingStopped

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["STORE", "Guard", "Problem"]

_log = logging.getLogger("tdbg_lab")

STORE = "store"
"""The probe that writes. A `StoreError` of it is told and turns nothing off: the store tries again."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A probe that failed and was turned off, or something that cannot be seen."""

    probe: str
    """What failed, such as ``activation/conv1``, ``gradients`` or ``store``."""
    step: int
    message: str
    """Type and text of the first error, or what cannot be seen."""
    off: bool = True
    """Whether it is turned off; else it goes on and only misses something."""


class Guard:
    """Runs our code inside somebody else's training loop, and keeps the time it takes.

    The first failure of a probe turns that probe off, is logged once with step and cause, and is
    kept in `problems`. With `strict` it is raised instead (tests use that). A disk that is full may have
    room again: see `STORE`.
    """

    __slots__ = ("began_ns", "on_problem", "problems", "put_back", "spent_ns", "state", "step", "strict")

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.problems: dict[str, Problem] = {}
        self.spent_ns = 0
        """Time spent inside guarded code so far, without that which is running."""
        self.began_ns = 0
        """When the guarded code that is running began, 0 outside: what it guards itself is timed already."""
        self.step = 0
        """The current step, for the message."""
        self.on_problem: Callable[[Problem], None] | None = None
        self.state: Callable[[], Any] = bool
        """Gives what guarded code changes of the framework while it runs; `put_back` is given it after an
        interrupt, which may come before a context manager has."""
        self.put_back: Callable[[Any], object] = bool

    def run(self, probe: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `function`; None when it failed or the probe is off."""
        if self.problems and self.is_off(probe):
            return None
        within = self.began_ns
        if not within:
            before = self.state()
            self.began_ns = started = perf_counter_ns()
        try:
            return function(*args, **kwargs)
        except TrainingStopped:
            raise
        except Exception as error:  # noqa: BLE001 - the one place where nothing may pass
            self.failed(probe, error)
            return None
        except BaseException:
            if not within:
                self.put_back(before)
            raise
        finally:
            if not within:
                self.began_ns = 0
                self.spent_ns += perf_counter_ns() - started

    def is_off(self, probe: str) -> bool:
        """Whether a probe has failed for good; of the store, what is gathered for it piles up then."""
        known = self.problems.get(probe)
        return known is not None and known.off

    def recovered(self, gap: str) -> None:
        """Say that writing goes on, and what is missing."""
        since = self.problems[STORE].step if STORE in self.problems else self.step
        self._say(f"writing goes on; of what was captured since step {since}, {gap}")

    def _say(self, message: str) -> None:
        """Say how it stands with the store; the last word stays among the problems."""
        known = self.problems.get(STORE)
        if known is not None and (known.off or known.message == message):
            return
        problem = self.problems[STORE] = Problem(STORE, self.step, message, off=False)
        _log.warning("tdbg-lab: from step %d on, %s; training goes on.", self.step, message)
        self._tell(problem)

    def failed(self, probe: str, error: Exception) -> None:
        """Turn `probe` off because of `error`; a store that may have room again goes on."""
        if self.strict:
            raise error
        if self.is_off(probe):
            return
        if probe == STORE and isinstance(error, StoreError):
            self._say(f"what is captured is lost until it can be written again: {str(error).rstrip('.')}")
            return
        problem = Problem(probe, self.step, f"{type(error).__name__}: {error}"[:500])
        self.problems[probe] = problem
        _log.warning(
            "tdbg-lab: capture of %s failed at step %d and is off from now on; training goes on. Cause: %s",
            probe,
            self.step,
            problem.message,
        )
        _log.debug("tdbg-lab: traceback of %s", probe, exc_info=error)
        self._tell(problem)

    def notice(self, subject: str, message: str) -> None:
        """Say once that something cannot be seen, and why; nothing is turned off."""
        if subject in self.problems:
            return
        problem = Problem(subject, self.step, message, off=False)
        self.problems[subject] = problem
        _log.warning("tdbg-lab: from step %d on, %s.", self.step, message)
        self._tell(problem)

    def _tell(self, problem: Problem) -> None:
        if self.on_problem is not None:
            on_problem, self.on_problem = self.on_problem, None  # a failure in telling is not told
            try:
                on_problem(problem)
            except Exception:  # noqa: BLE001
                _log.debug("tdbg-lab: the problem could not be recorded", exc_info=True)
            self.on_problem = on_problem
