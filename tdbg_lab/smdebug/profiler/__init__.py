"""What the profiler recorded: readers of system metrics and phases, frames, statistics, timelines.

Readers read runs of tdbg-lab and the predecessor's profiler folders alike; parsers read single files
of the latter.
"""

from __future__ import annotations

from tdbg_lab.smdebug.profiler.algorithm_metrics_reader import (
    LocalAlgorithmMetricsReader,
    S3AlgorithmMetricsReader,
)
from tdbg_lab.smdebug.profiler.metrics_reader_base import MetricsReaderBase
from tdbg_lab.smdebug.profiler.numpy_metrics_reader import S3NumpySystemMetricsReader
from tdbg_lab.smdebug.profiler.system_metrics import LocalSystemMetricsReader, S3SystemMetricsReader
from tdbg_lab.smdebug.profiler.system_profiler_file_parser import (
    ProfilerSystemEvents,
    SystemProfilerEventParser,
)
from tdbg_lab.smdebug.profiler.tf_profiler_parser import (
    HorovodProfilerEvents,
    SMDataParallelProfilerEvents,
    SMProfilerEvents,
    TensorboardProfilerEvents,
)
from tdbg_lab.smdebug.profiler.trace_event_file_parser import TraceEvent, TraceEventParser

__all__ = [
    "HorovodProfilerEvents",
    "LocalAlgorithmMetricsReader",
    "LocalSystemMetricsReader",
    "MetricsReaderBase",
    "ProfilerSystemEvents",
    "S3AlgorithmMetricsReader",
    "S3NumpySystemMetricsReader",
    "S3SystemMetricsReader",
    "SMDataParallelProfilerEvents",
    "SMProfilerEvents",
    "SystemProfilerEventParser",
    "TensorboardProfilerEvents",
    "TraceEvent",
    "TraceEventParser",
]
