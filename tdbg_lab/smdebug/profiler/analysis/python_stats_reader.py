"""Finds profiles of Python code: in runs of tdbg-lab, and in the predecessor's profiler folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tdbg_lab.errors import NotFoundError, TdbgError
from tdbg_lab.run import open_run
from tdbg_lab.smdebug.core.logger import get_logger
from tdbg_lab.smdebug.profiler.analysis.utils.python_profile_analysis_utils import StepPythonProfileStats
from tdbg_lab.smdebug.profiler.python_profile_utils import PythonProfileModes, StepPhase
from tdbg_lab.store.remote import parse_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tdbg_lab.store.profiles import ProfileInfo

__all__ = ["LocalPythonStatsReader", "PythonStatsReader", "S3PythonStatsReader"]

_FILES: Final = {
    "python_stats": "cprofile",
    "python_stats.json": "pyinstrument",
    "python_stats.html": "pyinstrument",
}
_OURS: Final = {"python.pstats": "cprofile", "python.speedscope.json": "pyinstrument"}
_MAX_DEPTH: Final = 6
_MAX_FILES: Final = 100_000


class PythonStatsReader:
    """Finds profiles in a folder."""

    def __init__(self, profile_dir: str | Path) -> None:
        self.profile_dir = str(profile_dir)

    def load_python_profile_stats(self) -> list[StepPythonProfileStats]:
        """What is there now."""
        return []


class LocalPythonStatsReader(PythonStatsReader):
    """Looks into a run of tdbg-lab, or into a profiler folder or any folder below it.

    Raises
    ------
    NotFoundError
        If there is no such folder.
    """

    def __init__(self, profile_dir: str | Path) -> None:
        super().__init__(profile_dir)
        if not Path(profile_dir).is_dir():
            raise NotFoundError(
                f"There is no folder {profile_dir}: give a run, a profiler folder, "
                "or the folder of a profiler such as framework/pytorch/cprofile."
            )

    def load_python_profile_stats(self) -> list[StepPythonProfileStats]:
        """All recordings, by time and node."""
        found = [*self._of_folders(), *self._of_run()]
        return sorted(found, key=lambda one: (one.start_time_since_epoch_in_micros, one.node_id))

    def _of_folders(self) -> Iterator[StepPythonProfileStats]:
        root = Path(self.profile_dir).resolve()
        count = 0
        for folder, below, names in os.walk(root):
            if len(Path(folder).relative_to(root).parts) >= _MAX_DEPTH:
                below.clear()
            for name in sorted(_FILES.keys() & names):
                count += 1
                if count > _MAX_FILES:
                    return
                parts = Path(folder).parts
                try:
                    yield StepPythonProfileStats.parse(
                        parts[-4], _FILES[name], parts[-2], parts[-1], str(Path(folder, name))
                    )
                except (ValueError, IndexError):
                    get_logger().info("%s is not in a folder that says when it was recorded.", name)

    def _of_run(self) -> Iterator[StepPythonProfileStats]:
        if not Path(self.profile_dir, "run.json").exists():
            return
        try:
            run = open_run(self.profile_dir)
        except TdbgError:
            return
        for profile in run.profiles():
            for name in profile.files:
                if name in _OURS:
                    yield _recording(profile, name, run.info.framework)


class S3PythonStatsReader(LocalPythonStatsReader):
    """Looks into a profiler folder, or a run of tdbg-lab, below an address (``s3://...``).

    Parameters
    ----------
    profile_dir
        Kept for the predecessor's scripts; the copy that is read lies in a folder of its own.

    Raises
    ------
    NotFoundError
        If there is neither.
    ConfigError, StoreError
        If the address is none, or cannot be read.
    """

    def __init__(self, profile_dir: str | Path, s3_path: str) -> None:
        from tdbg_lab.store.remote.opening import open_mirror

        del profile_dir
        self._copy = open_mirror(parse_url(s3_path))
        super().__init__(self._copy.path)

    def load_python_profile_stats(self) -> list[StepPythonProfileStats]:
        """All recordings, by time and node, those that are new there too."""
        self._copy.pull()
        return super().load_python_profile_stats()


def _recording(profile: ProfileInfo, name: str, framework: str) -> StepPythonProfileStats:
    return StepPythonProfileStats(
        _OURS[name],
        framework,
        f"{profile.rank}-algo-{profile.rank + 1}",
        PythonProfileModes.TRAIN,
        profile.first_step,
        StepPhase.STEP_START,
        profile.start_ns / 1000,
        PythonProfileModes.TRAIN,
        profile.last_step,
        StepPhase.STEP_END,
        (profile.start_ns + profile.duration_ns) / 1000,
        str(profile.path / name),
    )
