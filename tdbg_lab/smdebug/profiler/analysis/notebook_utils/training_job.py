"""The readers of one training."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tdbg_lab.errors import NotFoundError
from tdbg_lab.smdebug.exceptions import NoMoreProfilerData, SMDebugValueError
from tdbg_lab.smdebug.profiler.algorithm_metrics_reader import LocalAlgorithmMetricsReader
from tdbg_lab.smdebug.profiler.system_metrics import LocalSystemMetricsReader

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.smdebug.profiler.metrics_reader_base import MetricsReaderBase

__all__ = ["TrainingJob"]

_POLL_S = 0.5


class TrainingJob:
    """A training by the directory of its run, or by the folder that the predecessor's profiler wrote.

    Parameters
    ----------
    training_job_name
        The directory, or its address in a bucket (``s3://.../profiler-output``). Jobs are not looked up by
        their names.
    region
        Kept for the predecessor's scripts.

    Raises
    ------
    SMDebugValueError
        If there is no such directory.
    StoreError
        If a bucket cannot be read.
    """

    def __init__(self, training_job_name: str | Path, region: str | None = None) -> None:
        del region
        self.name = self.profiler_s3_output_path = str(training_job_name)
        try:
            self.system_metrics_reader = LocalSystemMetricsReader(training_job_name)
            self.framework_metrics_reader = LocalAlgorithmMetricsReader(training_job_name)
        except NotFoundError as error:
            raise SMDebugValueError(
                f"There is no run and no profiler folder at {self.name!r}; jobs of SageMaker are not looked "
                "up: give the address of the profiler output (s3://.../profiler-output), or a copy of it."
            ) from error

    def get_systems_metrics_reader(self) -> LocalSystemMetricsReader:
        """The reader of system metrics."""
        return self.system_metrics_reader

    def get_framework_metrics_reader(self) -> LocalAlgorithmMetricsReader:
        """The reader of phases."""
        return self.framework_metrics_reader

    def wait_for_sys_profiling_data_to_be_available(self) -> None:
        """Return when there is a system metric.

        Raises
        ------
        NoMoreProfilerData
            If training ended without one.
        """
        _wait(self.system_metrics_reader)

    def wait_for_framework_profiling_data_to_be_available(self) -> None:
        """Return when there is a phase.

        Raises
        ------
        NoMoreProfilerData
            If training ended without one.
        """
        _wait(self.framework_metrics_reader)


def _wait(reader: MetricsReaderBase) -> None:
    while reader.get_timestamp_of_latest_available_file() == 0:
        if reader.run.status != "running":
            raise NoMoreProfilerData(0)
        time.sleep(_POLL_S)
        reader.refresh_event_file_list()
