"""Profiles of Python code by step, time and phase of the training."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pandas as pd

from tdbg_lab.smdebug.core.logger import get_logger
from tdbg_lab.smdebug.profiler.analysis.python_stats_reader import (
    LocalPythonStatsReader,
    S3PythonStatsReader,
)
from tdbg_lab.smdebug.profiler.analysis.utils.python_profile_analysis_utils import (
    PyinstrumentStepStats,
    StepPythonProfileStats,
    cProfileStats,
)
from tdbg_lab.smdebug.profiler.python_profile_utils import (
    PythonProfileModes,
    StepPhase,
    python_profile_mode_to_str,
)
from tdbg_lab.store.smdebug.calls import read_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["PyinstrumentAnalysis", "PythonProfileAnalysis", "cProfileAnalysis"]

_MAX_JSON_BYTES: Final = 64 * 2**20
_Modes = tuple[PythonProfileModes, PythonProfileModes]


class PythonProfileAnalysis:
    """Recordings in a folder.

    Parameters
    ----------
    local_profile_dir
        A run of tdbg-lab, a profiler folder, or the folder of one profiler in it.
    s3_path
        Address of one of these in a bucket, in place of a folder.

    Raises
    ------
    NotFoundError
        If there is no such folder.
    ConfigError, StoreError
        If the address is none, or cannot be read.
    """

    name: ClassVar[str] = ""
    """Only recordings of this profiler; of all when empty."""

    def __init__(
        self,
        local_profile_dir: str | Path = "/tmp/python_stats",  # noqa: S108 - only read
        s3_path: str | None = None,
    ) -> None:
        self.python_stats_reader = (
            S3PythonStatsReader(local_profile_dir, s3_path)
            if s3_path
            else LocalPythonStatsReader(local_profile_dir)
        )
        self.python_profile_stats: list[StepPythonProfileStats] = []
        self._refresh(True)

    def _refresh(self, refresh_stats: bool) -> None:
        if refresh_stats:
            found = self.python_stats_reader.load_python_profile_stats()
            self.python_profile_stats = [one for one in found if self.name in {"", one.profiler_name}]

    def _fetch(
        self, node_id: str, refresh_stats: bool, fits: Callable[[StepPythonProfileStats], bool]
    ) -> Any:
        self._refresh(refresh_stats)
        known = self.python_profile_stats
        node = known[0].node_id if node_id == "any" and known else node_id
        return self._aggregate_stats([one for one in known if one.has_node_id(node) and fits(one)])

    def _aggregate_stats(self, requested_stats: Sequence[StepPythonProfileStats]) -> Any:
        return list(requested_stats)

    def fetch_profile_stats_by_step(
        self,
        start_step: int,
        end_step: int | None = None,
        mode: PythonProfileModes = PythonProfileModes.TRAIN,
        start_phase: StepPhase = StepPhase.STEP_START,
        end_phase: StepPhase = StepPhase.STEP_END,
        node_id: str = "any",
        refresh_stats: bool = True,
    ) -> Any:
        """What was recorded from one step to another, or of one step."""
        last = start_step if end_step is None else end_step
        return self._fetch(
            node_id,
            refresh_stats,
            lambda one: (
                one.in_step_interval(start_step, last, start_phase, end_phase)
                and one.has_start_and_end_mode(mode, mode)
            ),
        )

    def fetch_profile_stats_by_time(
        self,
        start_time_since_epoch_in_secs: float,
        end_time_since_epoch_in_secs: float,
        node_id: str = "any",
        refresh_stats: bool = True,
    ) -> Any:
        """What was recorded between two times, s since the epoch."""
        start, end = start_time_since_epoch_in_secs * 1e6, end_time_since_epoch_in_secs * 1e6
        return self._fetch(node_id, refresh_stats, lambda one: one.in_time_interval(start, end))

    def fetch_profile_stats_between_modes(
        self,
        start_mode: PythonProfileModes,
        end_mode: PythonProfileModes,
        node_id: str = "any",
        refresh_stats: bool = True,
    ) -> Any:
        """What was recorded from one mode to another."""
        return self._fetch(
            node_id, refresh_stats, lambda one: one.has_start_and_end_mode(start_mode, end_mode)
        )

    def fetch_pre_step_zero_profile_stats(self, node_id: str = "any", refresh_stats: bool = True) -> Any:
        """What was recorded before step 0."""
        return self._fetch(node_id, refresh_stats, lambda one: one.has_pre_step_zero_profile_stats())

    def fetch_post_hook_close_profile_stats(self, node_id: str = "any", refresh_stats: bool = True) -> Any:
        """What was recorded after the hook was closed."""
        return self._fetch(node_id, refresh_stats, lambda one: one.has_post_hook_close_profile_stats())

    def list_profile_stats(self, refresh_stats: bool = True) -> pd.DataFrame:
        """One row a file: who recorded it, from when to when, and where it is."""
        self._refresh(refresh_stats)
        frame = pd.DataFrame([asdict(one) for one in self.python_profile_stats])
        for column in ("start_mode", "end_mode") if len(frame) else ():
            frame[column] = [
                python_profile_mode_to_str(getattr(one, column)) for one in self.python_profile_stats
            ]
        return frame

    def list_available_node_ids(self, refresh_stats: bool = True) -> list[str]:
        """Nodes with recordings."""
        self._refresh(refresh_stats)
        return sorted({one.node_id for one in self.python_profile_stats})


class cProfileAnalysis(PythonProfileAnalysis):  # noqa: N801 - the predecessor's name
    """Recordings of cProfile: calls, added up. None stands for none."""

    name = "cprofile"

    def _aggregate_stats(self, requested_stats: Sequence[StepPythonProfileStats]) -> cProfileStats | None:
        calls = []
        for one in requested_stats:
            try:
                calls.append(read_calls(Path(one.stats_path)))
            except (OSError, ValueError) as error:
                get_logger().warning("A recording is left out: %s", error)
        return cProfileStats.of_calls(calls) if calls else None

    def fetch_profile_stats_by_training_phase(
        self, node_id: str = "any", refresh_stats: bool = True
    ) -> dict[_Modes, cProfileStats]:
        """Recordings from each mode to each, such as ``(TRAIN, EVAL)``; without those that are empty."""
        self._refresh(refresh_stats)
        found = {}
        for start in PythonProfileModes:
            for end in PythonProfileModes:
                stats = self.fetch_profile_stats_between_modes(start, end, node_id, refresh_stats=False)
                if stats is not None:
                    found[start, end] = stats
        return found

    def fetch_profile_stats_by_job_phase(
        self, node_id: str = "any", refresh_stats: bool = True
    ) -> dict[str, cProfileStats]:
        """``initialization`` until step 0, ``training_loop``, and ``finalization`` after the hook."""
        phases: dict[str, list[cProfileStats]] = {"training_loop": []}
        by_modes = self.fetch_profile_stats_by_training_phase(node_id, refresh_stats)
        for (start, end), stats in by_modes.items():
            if start is PythonProfileModes.PRE_STEP_ZERO:
                name = "initialization"
            elif end is PythonProfileModes.POST_HOOK_CLOSE:
                name = "finalization"
            else:
                name = "training_loop"
            phases.setdefault(name, []).append(stats)
        return {
            name: cProfileStats.of_calls([one.ps.stats for one in several])  # type: ignore[attr-defined]
            for name, several in phases.items()
        }


class PyinstrumentAnalysis(PythonProfileAnalysis):
    """Recordings of pyinstrument, one after the other. None stands for none."""

    name = "pyinstrument"

    def _aggregate_stats(
        self, requested_stats: Sequence[StepPythonProfileStats]
    ) -> list[PyinstrumentStepStats] | None:
        pages = {
            Path(one.stats_path).parent: one.stats_path
            for one in requested_stats
            if one.stats_path.endswith(".html")
        }
        found = []
        for one in requested_stats:
            path = Path(one.stats_path)
            if path.suffix == ".json":
                try:
                    found.append(PyinstrumentStepStats(pages.get(path.parent, ""), _read_json(path)))
                except (OSError, ValueError) as error:
                    get_logger().warning("A recording is left out: %s", error)
        return found or None


def _read_json(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MAX_JSON_BYTES:
        raise ValueError(f"{path.name} is larger than {_MAX_JSON_BYTES} bytes")
    value = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ValueError(f"{path.name} is not an object in JSON")  # noqa: TRY004 - of the file, not of the caller
    return value
