"""What readers of profiler data share: the folder, and looking for what is new."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tdbg_lab.run import open_run
from tdbg_lab.smdebug.profiler.utils import to_us
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

    def interval_of_steps(self, start_step: int, end_step: int) -> tuple[int, int] | None:
        """From the start of a step until another one begins, or all ends, us; None without such steps."""
        frame = self.run.spans()
        wanted = frame[(frame["step"] >= start_step) & (frame["step"] < end_step)]
        if not len(wanted):
            return None
        later = frame[frame["step"] >= end_step]
        end = (
            int(to_us(later["start_ns"]).min()) - 1
            if len(later)
            else int(to_us(wanted["start_ns"] + wanted["duration_ns"]).max())
        )
        return int(to_us(wanted["start_ns"]).min()), end

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
