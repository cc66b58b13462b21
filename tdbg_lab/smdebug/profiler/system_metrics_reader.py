"""Readers of system metrics, by the predecessor's import path."""

from __future__ import annotations

from tdbg_lab.smdebug.profiler.numpy_metrics_reader import S3NumpySystemMetricsReader
from tdbg_lab.smdebug.profiler.system_metrics import (
    LocalSystemMetricsReader,
    S3SystemMetricsReader,
    SystemMetricsReader,
)

__all__ = [
    "LocalSystemMetricsReader",
    "S3NumpySystemMetricsReader",
    "S3SystemMetricsReader",
    "SystemMetricsReader",
]
