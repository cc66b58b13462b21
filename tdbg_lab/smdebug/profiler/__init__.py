"""What the profiler recorded: readers of system metrics and phases, frames, statistics, timelines.

They read runs of tdbg-lab and the predecessor's profiler folders alike.
"""

from __future__ import annotations

from tdbg_lab.smdebug.profiler.algorithm_metrics_reader import (
    LocalAlgorithmMetricsReader,
    S3AlgorithmMetricsReader,
    TraceEvent,
)
from tdbg_lab.smdebug.profiler.metrics_reader_base import MetricsReaderBase
from tdbg_lab.smdebug.profiler.system_metrics_reader import LocalSystemMetricsReader, S3SystemMetricsReader

__all__ = [
    "LocalAlgorithmMetricsReader",
    "LocalSystemMetricsReader",
    "MetricsReaderBase",
    "S3AlgorithmMetricsReader",
    "S3SystemMetricsReader",
    "TraceEvent",
]
