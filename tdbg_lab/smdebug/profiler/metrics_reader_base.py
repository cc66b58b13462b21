"""What readers of profiler data share: the folder, and looking for what is new."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tdbg_lab.run import open_run
from tdbg_lab.store.source import is_foreign

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MetricsReaderBase"]


class MetricsReaderBase:
    """Reads a run of tdbg-lab, or the folder that the predecessor's profiler wrote.

    Parameters
    ----------
    trace_root_folder
        The folder, or its address in a bucket (``s3://...``).
    use_in_memory_cache
        Kept for the predecessor's scripts; what was read stays in memory anyway.

    Raises
    ------
    NotFoundError
        If neither is there.
    StoreError
        If a bucket cannot be read.
    """

    time_column = "time_ns"

    def __init__(self, trace_root_folder: str | Path, use_in_memory_cache: bool = False) -> None:
        del use_in_memory_cache
        self.run = open_run(Path(trace_root_folder).expanduser())

    def refresh_event_file_list(self) -> None:
        """Look for what is new."""
        self.run.refresh()

    def samples(self, start_ns: int | None = None, end_ns: int | None = None) -> pd.DataFrame:
        """Samples of system metrics; of a profiler folder only those that are in it.

        A run has the mean of all cores beside them (device ``cpu``), the predecessor's files have not.
        """
        frame = self.run.samples(start_ns=start_ns, end_ns=end_ns)
        if len(frame) and is_foreign(self.run.path):
            frame = frame[(frame["metric"] != "cpu") | (frame["device"] != "cpu")].reset_index(drop=True)
        return frame

    def _frame(self) -> pd.DataFrame:
        raise NotImplementedError

    def get_timestamp_of_first_available_file(self) -> int:
        """Time of the first event, us since the epoch; 0 when there is none."""
        times = self._frame()[self.time_column]
        return int(times.min() // 1000) if len(times) else 0

    def get_timestamp_of_latest_available_file(self) -> int:
        """Time of the last event, us since the epoch; 0 when there is none."""
        times = self._frame()[self.time_column]
        return int(times.max() // 1000) if len(times) else 0
