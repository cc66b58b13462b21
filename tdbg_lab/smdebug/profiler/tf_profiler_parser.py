"""Timelines by what wrote them: the predecessor's hooks, TensorFlow's profiler, Horovod, smdataparallel."""

from __future__ import annotations

import re
from pathlib import Path

from tdbg_lab.smdebug.profiler.trace_event_file_parser import TraceEvent, TraceEventParser

__all__ = [
    "HorovodProfilerEvents",
    "SMDataParallelProfilerEvents",
    "SMProfilerEvents",
    "TensorboardProfilerEvents",
]

_MARK = re.compile(r"aws_marker-(ForwardPass|ComputeGradient|ApplyGradient)(?:/|$)")
_METADATA = re.compile(r".+_(\d{1,18})_\d{1,18}\.metadata")
_UP_TO_METADATA = 4
"""Folders from the step to ``plugins/profile/<time>/<host>.trace.json.gz``."""


class SMProfilerEvents(TraceEventParser):
    """Phases that a hook wrote (``..._pythontimeline.json``, ``..._model_timeline.json``)."""

    def __init__(self, type: str = "PythontimelineMetrics") -> None:  # noqa: A002 - the predecessor's name
        super().__init__(type)


class TensorboardProfilerEvents(TraceEventParser):
    """Operations that TensorFlow's profiler saw (``<host>.trace.json.gz``)."""

    def __init__(self) -> None:
        super().__init__("TFProfilerMetrics")

    def read_events_from_file(self, tracefile: str | Path) -> None:
        """Read a trace; its times count from what the ``.metadata`` file beside it tells."""
        self._base_us = _began_us(Path(tracefile))
        super().read_events_from_file(tracefile)

    def get_complete_op_events(self, tracefile: str | Path) -> list[tuple[TraceEvent, str]]:
        """Operations with the part of the training step that they are marked with."""
        self.read_events_from_file(tracefile)
        marks = ((event, _MARK.match(event.event_name)) for event in self.get_all_events())
        return [(event, mark[1]) for event, mark in marks if mark and event.event_args]

    def get_training_info(self, tracefile: str | Path) -> dict[str, list[list[object]]]:
        """Name, beginning and duration in us of the operations of each part of the training step."""
        found: dict[str, list[list[object]]] = {"ForwardPass": [], "ComputeGradient": [], "ApplyGradient": []}
        for event, part in self.get_complete_op_events(tracefile):
            found[part].append([event.event_name, event.start_time, event.duration])
        return found


class HorovodProfilerEvents(TraceEventParser):
    """What Horovod did (``..._horovod_timeline.json``)."""

    def __init__(self) -> None:
        super().__init__("HorovodMetrics")


class SMDataParallelProfilerEvents(TraceEventParser):
    """What SageMaker's data parallel library did (``..._smdataparallel_timeline.json``)."""

    def __init__(self) -> None:
        super().__init__("SMDataParallelMetrics")


def _began_us(path: Path) -> int:
    """When the profiler was started, us since the epoch; 0 when it is not told."""
    folders = path.parents
    if len(folders) < _UP_TO_METADATA:
        return 0
    names = sorted(file.name for file in folders[_UP_TO_METADATA - 1].glob("*.metadata"))
    found = (match for match in map(_METADATA.fullmatch, names) if match)
    return next((int(match[1]) for match in found), 0)
