"""Framework metrics: phases of training and what happened in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.smdebug.profiler.metrics_reader_base import MetricsReaderBase
from tdbg_lab.smdebug.profiler.trace_event_file_parser import TraceEvent
from tdbg_lab.smdebug.profiler.utils import TimeUnits, to_ns, to_us

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

__all__ = ["AlgorithmMetricsReader", "LocalAlgorithmMetricsReader", "S3AlgorithmMetricsReader", "during"]


class AlgorithmMetricsReader(MetricsReaderBase):
    """Reads phases, wherever they are."""

    time_column = "start_ns"

    def _frame(self) -> pd.DataFrame:
        return self.run.spans()

    def get_events(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
        file_suffix_filter: list[str] | None = None,
    ) -> list[TraceEvent]:
        """Intervals that are going on between two times since the epoch, by start; of one phase if given.

        One that ends at the first time, or begins at the second, is among them.
        """
        del file_suffix_filter
        self.refresh_event_file_list()
        start, end = (to_ns(one, unit) // 1000 for one in (start_time, end_time))
        return _events(during(self.run.spans(end_ns=(end + 1) * 1000), start, end), event_type)

    def get_events_by_step(
        self,
        start_step: int,
        end_step: int,
        event_type: str | None = None,
        file_suffix_filter: list[str] | None = None,
    ) -> list[TraceEvent]:
        """Intervals that are going on from the start of the first step until the second begins, by start.

        One that ends where the first step begins is not among them.
        """
        del file_suffix_filter
        self.refresh_event_file_list()
        interval = self.interval_of_steps(start_step, end_step)
        if interval is None:
            return []
        found = during(self.run.spans(), *interval)
        begun = to_us(found["start_ns"]) >= interval[0]
        lasts = to_us(found["start_ns"] + found["duration_ns"]) > interval[0]
        return _events(found[begun | lasts], event_type)


class LocalAlgorithmMetricsReader(AlgorithmMetricsReader):
    """Reads phases of a folder."""


class S3AlgorithmMetricsReader(AlgorithmMetricsReader):
    """Reads phases below an address (``s3://bucket/.../profiler-output``)."""

    def __init__(self, s3_trial_path: str | Path, use_in_memory_cache: bool = False) -> None:
        super().__init__(s3_trial_path, use_in_memory_cache)


def during(frame: pd.DataFrame, start_us: int, end_us: int) -> pd.DataFrame:
    """Those spans that are going on between two times, both inclusive."""
    start, end = to_us(frame["start_ns"]), to_us(frame["start_ns"] + frame["duration_ns"])
    return frame[(start <= end_us) & (end >= start_us)]


def _events(frame: pd.DataFrame, event_type: str | None) -> list[TraceEvent]:
    if event_type is not None:
        frame = frame[frame["phase"] == event_type]
    return [
        TraceEvent(
            str(row["name"]),
            str(row["phase"]),
            to_us(int(row["start_ns"])),
            to_us(int(row["start_ns"] + row["duration_ns"])),
            int(row["rank"]),
            int(row["thread"]),
            f"{int(row['rank'])}-algo-{int(row['rank']) + 1}",
            {"step_num": int(row["step"])} if row["step"] >= 0 else {},
        )
        for row in frame.to_dict("records")
    ]
