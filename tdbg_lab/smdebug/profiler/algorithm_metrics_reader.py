"""Framework metrics: phases of training and what happened in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.smdebug.profiler.metrics_reader_base import MetricsReaderBase
from tdbg_lab.smdebug.profiler.trace_event_file_parser import TraceEvent
from tdbg_lab.smdebug.profiler.utils import TimeUnits, to_ns, to_us

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LocalAlgorithmMetricsReader", "S3AlgorithmMetricsReader"]


class LocalAlgorithmMetricsReader(MetricsReaderBase):
    """Reads phases of a folder."""

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
        """Intervals that begin between two times since the epoch, by time; of one phase when it is given."""
        del file_suffix_filter
        self.refresh_event_file_list()
        frame = self.run.spans(start_ns=to_ns(start_time, unit), end_ns=to_ns(end_time, unit))
        return _events(frame if event_type is None else frame[frame["phase"] == event_type])

    def get_events_by_step(
        self,
        start_step: int,
        end_step: int,
        event_type: str | None = None,
        file_suffix_filter: list[str] | None = None,
    ) -> list[TraceEvent]:
        """Intervals of the steps from the first on and before the second, by time."""
        del file_suffix_filter
        self.refresh_event_file_list()
        frame = self.run.spans()
        frame = frame[(frame["step"] >= start_step) & (frame["step"] < end_step)]
        return _events(frame if event_type is None else frame[frame["phase"] == event_type])


class S3AlgorithmMetricsReader(LocalAlgorithmMetricsReader):
    """Reads phases below an address (``s3://bucket/.../profiler-output``)."""


def _events(frame: pd.DataFrame) -> list[TraceEvent]:
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
