"""The profiles that SageMaker Debugger's profiler was told to make, as ours."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tdbg_lab.config.profile import MAX_PROFILED_SECONDS, MAX_PROFILED_STEPS, PlannedProfile
from tdbg_lab.config.sagemaker.remarks import remark

if TYPE_CHECKING:
    from tdbg_lab.config.sagemaker.profiler import ProfileRange, ProfilerJson

__all__ = ["planned_profiles"]

_OPERATORS, _PYTHON, _LOADING = (
    "DetailedProfilingConfig",
    "PythonProfilingConfig",
    "DataloaderProfilingConfig",
)
_LEAST_SECONDS = 0.05
_NUM_STEPS = 1
"""Where a range says only where it begins."""


def planned_profiles(profiler: ProfilerJson) -> tuple[PlannedProfile, ...]:
    """Detailed and Python profiles with a range; those of one range are made together.

    What is not made while training is said in the log: loading of data is recorded at every step anyway.
    """
    windows: dict[tuple[tuple[str, Any], ...], dict[str, Any]] = {}
    for category, given in profiler.ranges.items():
        if category == _LOADING:
            continue
        if category not in {_OPERATORS, _PYTHON}:
            remark(f"{category}: this profile is not made while training.")
            continue
        window = _window(category, given)
        if window is None:
            continue
        what = windows.setdefault(tuple(sorted(window.items())), {"operators": False, "python": "off"})
        if category == _OPERATORS:
            what["operators"] = True
        else:
            what["python"] = _python(given)
    return tuple(PlannedProfile(**dict(window), **what) for window, what in windows.items())


def _window(category: str, given: ProfileRange) -> dict[str, Any] | None:
    """When to begin and for how long; None when nothing is to be made."""
    if given == replace(given, start_step=None, num_steps=None, start_s=None, duration_s=None):
        if given.options:
            remark(f"{category} has no range of steps or time, so no profile is made.")
        return None
    if given.start_s is None and given.duration_s is None:
        steps = _NUM_STEPS if given.num_steps is None else given.num_steps
        window: dict[str, Any] = {"steps": _at_most(category, steps, MAX_PROFILED_STEPS, "steps")}
        if given.start_step is not None:
            window["start"] = given.start_step
        return window if steps > 0 else None
    seconds = MAX_PROFILED_SECONDS if given.duration_s is None else given.duration_s
    if given.start_s is not None and given.start_s + seconds <= time.time():
        remark(f"{category}: its time is over, so no profile is made.")
        return None
    window = {"seconds": max(_at_most(category, seconds, MAX_PROFILED_SECONDS, "seconds"), _LEAST_SECONDS)}
    if given.start_s is not None:
        window["start_s"] = given.start_s
    return window


def _at_most(category: str, value: float, most: float, unit: str) -> float:
    if value > most:
        remark(f"{category}: {most:g} of {value:g} {unit} are profiled, no more.")
    return min(value, most)


def _python(given: ProfileRange) -> str:
    if given.options.get("cProfileTimer", "default").lower() not in {"total_time", "default"}:
        remark("PythonProfilingConfig: cProfileTimer is total_time, the only one there is.")
    return "sampling" if given.options.get("ProfilerName", "").lower() == "pyinstrument" else "calls"
