"""Where in a training a profile of Python code begins and ends."""

from __future__ import annotations

from enum import Enum, IntEnum

from tdbg_lab.smdebug.exceptions import SMDebugValueError

__all__ = [
    "PythonProfileModes",
    "PythonProfilerName",
    "StepPhase",
    "cProfileTimer",
    "mode_keys_to_python_profile_mode",
    "python_profile_mode_to_str",
    "str_to_python_profile_mode",
]


class PythonProfileModes(IntEnum):
    """What the training does."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4
    PRE_STEP_ZERO = 5
    POST_HOOK_CLOSE = 6


class StepPhase(Enum):
    """A moment of a step."""

    START = "start"
    STEP_START = "stepstart"
    FORWARD_PASS_END = "forwardpassend"  # noqa: S105 - no secret
    STEP_END = "stepend"
    END = "end"


class PythonProfilerName(Enum):
    """Who recorded it."""

    CPROFILE = "cprofile"
    PYINSTRUMENT = "pyinstrument"


class cProfileTimer(Enum):  # noqa: N801 - the predecessor's name
    """What cProfile counted."""

    TOTAL_TIME = "total_time"
    CPU_TIME = "cpu_time"
    OFF_CPU_TIME = "off_cpu_time"
    DEFAULT = "default"


def python_profile_mode_to_str(mode: PythonProfileModes) -> str:
    """As in names of folders: ``prestepzero``."""
    return mode.name.replace("_", "").lower()


def str_to_python_profile_mode(mode_str: str) -> PythonProfileModes:
    """From the name in a folder's name.

    Raises
    ------
    SMDebugValueError
        If there is no such mode.
    """
    for mode in PythonProfileModes:
        if python_profile_mode_to_str(mode) == mode_str:
            return mode
    known = ", ".join(python_profile_mode_to_str(mode) for mode in PythonProfileModes)
    raise SMDebugValueError(f"{mode_str!r} is no mode of a profile; expected {known}.")


def mode_keys_to_python_profile_mode(mode: IntEnum) -> PythonProfileModes:
    """The mode of a hook."""
    return PythonProfileModes(mode.value)
