"""A trial of profiler data: what a profiler rule looks at."""

from __future__ import annotations

import tempfile
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tdbg_lab.errors import NotFoundError
from tdbg_lab.records import RunStatus
from tdbg_lab.smdebug.core.logger import get_logger
from tdbg_lab.smdebug.exceptions import NoMoreProfilerData, SMDebugRuntimeError
from tdbg_lab.smdebug.profiler.algorithm_metrics_reader import LocalAlgorithmMetricsReader
from tdbg_lab.smdebug.profiler.system_metrics import LocalSystemMetricsReader
from tdbg_lab.smdebug.trials.waiting import Waiting

if TYPE_CHECKING:
    from tdbg_lab.smdebug.profiler.system_profiler_file_parser import ProfilerSystemEvent
    from tdbg_lab.smdebug.profiler.trace_event_file_parser import TraceEvent

__all__ = ["ProfilerTrial"]

_POLL_S = 0.5
_ENDS = ("system/training_job_end.ts", "framework/training_job_end.ts")
_IGNORED = ".sagemaker-ignore"


class ProfilerTrial:
    """Reads system metrics and phases of a job while it goes on; waits until there are some.

    All times are us since the epoch.

    Parameters
    ----------
    name
        For people.
    trial_dir
        A run of tdbg-lab, the folder that the predecessor's profiler wrote, or the address of one.
    output_dir
        Where rules leave their reports; made when it is not there. By default a new temporary folder.

    Raises
    ------
    SMDebugRuntimeError
        If training has ended and left no profiler data.
    """

    def __init__(self, name: str, trial_dir: str | Path, output_dir: str | Path = "") -> None:
        self.name = name
        self.path = str(trial_dir)
        self.logger = get_logger()
        self._output_dir = output_dir
        if output_dir:
            Path(self.temp_dir).mkdir(parents=True, exist_ok=True)
        self.system_metrics_reader, self.framework_metrics_reader = _wait_for(self.path)
        self.first_timestamp = 0
        self.get_first_timestamp()

    @cached_property
    def output_dir(self) -> str:
        """Where rules leave their reports."""
        return str(self._output_dir or tempfile.mkdtemp(prefix="tdbg-rules-"))

    @cached_property
    def temp_dir(self) -> str:
        """Where rules leave what nobody reads but them."""
        folder = Path(self.output_dir, _IGNORED)
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    def job_finished(self) -> bool:
        """Whether training has ended."""
        run = self.system_metrics_reader.run
        return run.status != RunStatus.RUNNING or any((run.path / end).exists() for end in _ENDS)

    def get_first_timestamp(self) -> None:
        """Wait for data, and keep the time of the first in ``first_timestamp``.

        Raises
        ------
        SMDebugRuntimeError
            If training has ended and left none.
        """
        while not self.first_timestamp:
            ended = self.job_finished()  # asked first: what comes before the end is seen
            self._refresh()
            readers = (self.system_metrics_reader, self.framework_metrics_reader)
            times = [reader.get_timestamp_of_first_available_file() for reader in readers]
            self.first_timestamp = min(filter(None, times), default=0)
            if self.first_timestamp:
                return
            if ended:
                raise SMDebugRuntimeError(
                    f"Training has ended and left no profiler data in {self.path}; "
                    "expected system metrics or phases of steps."
                )
            time.sleep(_POLL_S)

    def get_latest_timestamp(self) -> int:
        """The time up to which all data are there; 0 when there are none.

        While training goes on the kind that is behind counts; once it has ended the last of all.
        """
        ended = self.job_finished()  # asked first: what comes before the end is seen
        self._refresh()
        readers = (self.system_metrics_reader, self.framework_metrics_reader)
        times = [reader.get_timestamp_of_latest_available_file() for reader in readers]
        return (max if ended else min)(filter(None, times), default=0)

    def wait_for_data(self, end_time: float, start_time: float) -> None:
        """Wait until there are data up to a time, or training has ended.

        Raises
        ------
        NoMoreProfilerData
            If training has ended and there is nothing after `start_time`.
        """
        while end_time > self.get_latest_timestamp() and not self.job_finished():
            time.sleep(_POLL_S)
        if self.job_finished() and start_time >= self.get_latest_timestamp():
            raise NoMoreProfilerData(end_time)

    def get_system_metrics(self, start_time: float, end_time: float) -> list[ProfilerSystemEvent]:
        """Readings between two times."""
        return self.system_metrics_reader.get_events(start_time, end_time)

    def get_framework_metrics(self, start_time: float, end_time: float) -> list[TraceEvent]:
        """Intervals between two times."""
        return self.framework_metrics_reader.get_events(start_time, end_time)

    def _refresh(self) -> None:
        self.system_metrics_reader.refresh_event_file_list()
        self.framework_metrics_reader.refresh_event_file_list()


def _wait_for(path: str) -> tuple[LocalSystemMetricsReader, LocalAlgorithmMetricsReader]:
    waiting = Waiting(f"system metrics or phases at {path}", poll_s=_POLL_S)
    while True:
        try:
            return LocalSystemMetricsReader(path), LocalAlgorithmMetricsReader(path)
        except NotFoundError:
            waiting.pause()
