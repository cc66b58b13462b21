"""What to profile on demand: how long, and with which profilers."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MAX_SECONDS", "MAX_STEPS", "PROFILE", "ProfileWindow", "PythonProfiler"]

PROFILE: Final = "profile"
"""Kind of the requests."""
MAX_STEPS: Final = 1000
MAX_SECONDS: Final = 600.0
_MIN_SECONDS: Final = 0.05
_MAX_START: Final = 2**53
_DEFAULT_STEPS: Final = 5

PythonProfiler = Literal["sampling", "calls", "off"]
_PYTHON: Final = ("sampling", "calls", "off")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfileWindow:
    """A window of training and what to record in it.

    Operators and Python functions are recorded one after the other, each for the whole length of the
    window: both hang on the one profile hook of the interpreter, and each would slow down and so distort
    the other.

    Raises
    ------
    ConfigError
        If the window makes no sense.
    """

    steps: int | None = None
    """Length in steps; 5 when neither this nor `seconds` is given."""
    seconds: float | None = None
    """Length in seconds, ended at the end of the step it runs out in."""
    start: int | None = None
    """Step to begin with; None: the next one."""
    operators: bool = True
    """Record operators, and kernels of a GPU, with torch.profiler."""
    shapes: bool = True
    memory: bool = True
    stacks: bool = True
    """Record with the operators the Python calls they are in."""
    python: PythonProfiler = "sampling"
    """Record Python functions: by samples (pyinstrument), every call (cProfile), or not."""

    def __post_init__(self) -> None:
        if self.steps is not None and self.seconds is not None:
            raise ConfigError("A profile is for a number of steps or of seconds: give one of them.")
        if self.steps is None and self.seconds is None:
            object.__setattr__(self, "steps", _DEFAULT_STEPS)
        if self.steps is not None and (type(self.steps) is not int or not 1 <= self.steps <= MAX_STEPS):
            raise _wrong("steps", self.steps, f"a whole number from 1 to {MAX_STEPS}")
        self._check_seconds()
        if self.start is not None and (type(self.start) is not int or not 0 <= self.start <= _MAX_START):
            raise _wrong("start", self.start, "a step, from 0")
        for name in ("operators", "shapes", "memory", "stacks"):
            if type(getattr(self, name)) is not bool:
                raise _wrong(name, getattr(self, name), "true or false")
        if self.python not in _PYTHON:
            raise _wrong("python", self.python, "one of " + ", ".join(_PYTHON))
        if not self.operators and self.python == "off":
            raise ConfigError("A profile of neither operators nor Python functions would be empty.")

    def _check_seconds(self) -> None:
        seconds: Any = self.seconds
        if seconds is None:
            return
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not number or not math.isfinite(seconds) or not _MIN_SECONDS <= seconds <= MAX_SECONDS:
            raise _wrong("seconds", seconds, f"a number from {_MIN_SECONDS} to {MAX_SECONDS:g}")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ProfileWindow:
        """Make one from a mapping, such as the arguments of a request; what is not given is the default.

        Raises
        ------
        ConfigError
            With one sentence on what is wrong.
        """
        known = [field.name for field in fields(cls)]
        unknown = [str(name)[:80] for name in given if name not in known]
        if unknown:
            raise ConfigError(f"A profile has no setting {unknown[0]!r}; expected one of {', '.join(known)}.")
        return cls(**given)

    def dump(self) -> dict[str, float | int | str | bool]:
        """As JSON; `of` reads it."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in given.items() if value is not None}

    def __str__(self) -> str:
        length = f"{self.seconds:g} s" if self.steps is None else f"{self.steps} steps"
        return length if self.start is None else f"{length} from step {self.start} on"


def _wrong(name: str, found: object, expected: str) -> ConfigError:
    return ConfigError(f"{name} of a profile is {str(found)[:40]}; expected {expected}.")
