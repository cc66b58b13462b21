"""Profiles of Python code: when they were recorded, and what they hold."""

from __future__ import annotations

import pstats
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import pandas as pd

from tdbg_lab.smdebug.exceptions import SMDebugTypeError
from tdbg_lab.smdebug.profiler.python_profile_utils import (
    PythonProfileModes,
    StepPhase,
    str_to_python_profile_mode,
)

if TYPE_CHECKING:
    from typing import Self

    from tdbg_lab.store.smdebug.calls import Calls

__all__ = [
    "Metrics",
    "PyinstrumentStepStats",
    "PythonProfileModes",
    "StepPhase",
    "StepPythonProfileStats",
    "cProfileFunctionStats",
    "cProfileStats",
]


class Metrics(Enum):
    """What functions are sorted by."""

    TOTAL_TIME = "tottime"
    """In the function itself, s."""
    CUMULATIVE_TIME = "cumtime"
    """With all it calls, s."""
    PRIMITIVE_CALLS = "pcalls"
    """Without recursive ones."""
    TOTAL_CALLS = "ncalls"


@dataclass(slots=True)
class StepPythonProfileStats:
    """One recording: who made it, and from when to when."""

    profiler_name: str
    framework: str
    node_id: str
    start_mode: PythonProfileModes
    start_step: float
    """-1 before step 0."""
    start_phase: StepPhase
    start_time_since_epoch_in_micros: float
    end_mode: PythonProfileModes
    end_step: float
    """Infinite at the end of the script."""
    end_phase: StepPhase
    end_time_since_epoch_in_micros: float
    stats_path: str

    @classmethod
    def parse(cls, framework: str, profiler_name: str, node_id: str, stats_dir: str, stats_path: str) -> Self:
        """From the name of its folder: ``train-3-stepstart-<us>_train-3-stepend-<us>``.

        Raises
        ------
        ValueError
            If it is another one.
        """
        start, end = stats_dir.split("_")
        start_mode, start_step, start_phase, start_us = start.split("-")
        end_mode, end_step, end_phase, end_us = end.split("-")
        return cls(
            profiler_name,
            framework,
            node_id,
            str_to_python_profile_mode(start_mode),
            -1 if start_step == "*" else int(start_step),
            StepPhase(start_phase),
            float(start_us),
            str_to_python_profile_mode(end_mode),
            float("inf") if end_step == "*" else int(end_step),
            StepPhase(end_phase),
            float(end_us),
            stats_path,
        )

    def has_start_and_end_mode(self, start_mode: PythonProfileModes, end_mode: PythonProfileModes) -> bool:
        """Whether it begins and ends in these modes."""
        return self.start_mode == start_mode and self.end_mode == end_mode

    def in_time_interval(self, start_us: float, end_us: float) -> bool:
        """Whether it and the interval have a moment in common, us since the epoch."""
        return self.start_time_since_epoch_in_micros <= end_us and (
            start_us <= self.end_time_since_epoch_in_micros
        )

    def in_step_interval(
        self, start_step: float, end_step: float, start_phase: StepPhase, end_phase: StepPhase
    ) -> bool:
        """Whether it lies between two moments of steps, which count."""
        if start_step > self.start_step or end_step < self.end_step:
            return False
        late = start_phase in {StepPhase.STEP_END, StepPhase.FORWARD_PASS_END}
        if start_step == self.start_step and late and self.start_phase != start_phase:
            return False
        early = end_phase is StepPhase.STEP_START
        return not (end_step == self.end_step and early and self.end_phase != end_phase)

    def has_pre_step_zero_profile_stats(self) -> bool:
        """Whether it begins before step 0."""
        return self.start_phase is StepPhase.START

    def has_post_hook_close_profile_stats(self) -> bool:
        """Whether it ends with the script."""
        return self.end_phase is StepPhase.END

    def has_node_id(self, node_id: str) -> bool:
        """Whether it was recorded there."""
        return self.node_id == node_id


class cProfileStats:  # noqa: N801 - the predecessor's name
    """Calls of functions, of one recording or of several together.

    Attributes
    ----------
    ps : pstats.Stats
        For its ways to sort and to print.
    function_stats_list : list of cProfileFunctionStats
        Each function.
    """

    def __init__(self, ps: pstats.Stats) -> None:
        self.ps = ps
        self.function_stats_list = [
            cProfileFunctionStats(key, value)
            for key, value in ps.stats.items()  # type: ignore[attr-defined]
        ]

    @classmethod
    def of_calls(cls, calls: list[Calls]) -> Self:
        """Of several recordings, added up."""
        total = pstats.Stats()
        for one in calls:
            total.add(_stats(one))
        return cls(total)

    def print_top_n_functions(self, by: Metrics, n: int = 10) -> None:
        """Print the first functions.

        Raises
        ------
        SMDebugTypeError
            If `by` is no metric, or `n` no whole number.
        """
        if not (isinstance(by, Metrics) and isinstance(n, int)):  # type: ignore[redundant-expr]
            raise SMDebugTypeError(f"print_top_n_functions takes a Metrics and a number, not {by!r}, {n!r}.")
        self.ps.sort_stats(by.value).print_stats(n)

    def get_function_stats(self) -> pd.DataFrame:
        """One row a function."""
        return pd.DataFrame([one.to_dict() for one in self.function_stats_list])


class _Source:
    """What `pstats.Stats` takes in place of a profiler."""

    def __init__(self, calls: Calls) -> None:
        self.stats = calls

    def create_stats(self) -> None:
        """They are there."""


def _stats(calls: Calls) -> pstats.Stats:
    return pstats.Stats(_Source(calls)) if calls else pstats.Stats()  # type: ignore[arg-type]


class cProfileFunctionStats:  # noqa: N801 - the predecessor's name
    """A function: times in s, and names of its callers as ``file:line(name)``."""

    def __init__(self, key: Any, value: Any) -> None:
        self.function_name = pstats.func_std_string(key)  # type: ignore[attr-defined]
        self.prim_calls, self.total_calls, self.total_time, self.cumulative_time, callers = value
        self.callers = [pstats.func_std_string(one) for one in callers]  # type: ignore[attr-defined]

    def to_dict(self) -> dict[str, Any]:
        """Name and numbers."""
        return {
            "function name": self.function_name,
            "# of primitive calls": self.prim_calls,
            "# of total calls": self.total_calls,
            "total time": self.total_time,
            "cumulative time": self.cumulative_time,
        }

    def __repr__(self) -> str:
        return repr(self.to_dict())


@dataclass(frozen=True, slots=True)
class PyinstrumentStepStats:
    """A recording of pyinstrument."""

    html_file_path: str
    """Empty where there is none, as in runs of tdbg-lab."""
    json_stats: dict[str, Any]
