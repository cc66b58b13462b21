"""System metrics: how busy the machine was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.smdebug.profiler.metrics_reader_base import MetricsReaderBase
from tdbg_lab.smdebug.profiler.system_profiler_file_parser import ProfilerSystemEvent
from tdbg_lab.smdebug.profiler.utils import TimeUnits, to_ns

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

__all__ = ["LocalSystemMetricsReader", "S3SystemMetricsReader", "SystemMetricsReader", "described"]

_TYPES = (
    ("process_cpu", "cpu", "ProcessCPUUtilization"),
    ("cpu", "cpu", "CPUUtilization"),
    ("gpu_memory", "gpu", "GPUMemoryUtilization"),
    ("gpu", "gpu", "GPUUtilization"),
    ("memory", "memory", "MemoryUsedPercent"),
    ("disk_read", "i/o", "ReadThroughputInBytesPerSecond"),
    ("disk_write", "i/o", "WriteThroughputInBytesPerSecond"),
    ("net_recv", "network", "ReceiveBytesPerSecond"),
    ("net_sent", "network", "TransmitBytesPerSecond"),
)
_KINDS = ("cpu", "gpu", "memory", "i/o", "network")
_PREFIXES = (("gpu", "gpu"), ("cpu", "cpu"), ("process", "memory"), ("memory", "memory"), ("disk", "i/o"))


def described(metric: str) -> tuple[str, str]:
    """The predecessor's type and dimension of a metric of ours, or of one of its own (``i/o/Algorithm``)."""
    own = next((kind for kind in _KINDS if metric.startswith(f"{kind}/")), None)
    if own is not None:
        return own, metric.removeprefix(f"{own}/")
    for name, kind, dimension in _TYPES:
        if metric == name:
            return kind, dimension
    return next((kind for prefix, kind in _PREFIXES if metric.startswith(prefix)), "network"), metric


class SystemMetricsReader(MetricsReaderBase):
    """Reads system metrics, wherever they are."""

    def _frame(self) -> pd.DataFrame:
        return self.samples()

    def get_events(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
        file_suffix_filter: list[str] | None = None,
    ) -> list[ProfilerSystemEvent]:
        """Readings between two times since the epoch, by time; of one type when it is given."""
        del file_suffix_filter  # of timelines
        self.refresh_event_file_list()
        frame = self.samples(to_ns(start_time, unit), to_ns(end_time, unit))
        found = []
        for row in frame.to_dict("records"):
            kind, dimension = described(str(row["metric"]))
            if event_type in {None, kind}:
                name = str(row["device"]) or kind
                node = f"algo-{int(row['rank']) + 1}"
                found.append(
                    ProfilerSystemEvent(
                        kind, name, dimension, float(row["value"]), node, row["time_ns"] / 1e9
                    )
                )
        return found

    def get_events_by_step(
        self,
        start_step: int,
        end_step: int,
        event_type: str | None = None,
        file_suffix_filter: list[str] | None = None,
    ) -> list[ProfilerSystemEvent]:
        """Readings from the start of the first step until the second begins, by time."""
        self.refresh_event_file_list()
        interval = self.interval_of_steps(start_step, end_step)
        if interval is None:
            return []
        return self.get_events(*interval, event_type=event_type, file_suffix_filter=file_suffix_filter)


class LocalSystemMetricsReader(SystemMetricsReader):
    """Reads system metrics of a folder."""


class S3SystemMetricsReader(SystemMetricsReader):
    """Reads system metrics below an address (``s3://bucket/.../profiler-output``)."""

    def __init__(self, s3_trial_path: str | Path, use_in_memory_cache: bool = False) -> None:
        super().__init__(s3_trial_path, use_in_memory_cache)
