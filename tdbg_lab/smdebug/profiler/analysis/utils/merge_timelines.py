"""One timeline of everything: phases, and where the GPU had little to do."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd

__all__ = ["MergeUnit", "MergedTimeline"]

_LOW_GPU = 85.0
"""Percent."""


class MergeUnit(Enum):
    """What a range counts."""

    TIME = "time"
    STEP = "step"


class MergedTimeline:
    """Writes a Chrome trace (``chrome://tracing``, Perfetto).

    Parameters
    ----------
    path
        A run of tdbg-lab, or the predecessor's profiler folder.
    file_suffix_filter
        Kept for the predecessor's scripts.
    output_directory
        Where the trace goes; None for `path`.
    """

    def __init__(
        self,
        path: str | Path,
        file_suffix_filter: list[str] | None = None,
        output_directory: str | Path | None = None,
    ) -> None:
        del file_suffix_filter
        self._frames = PandasFrame(path)
        self._output = Path(path if output_directory is None else output_directory)

    def merge_timeline(
        self,
        start: float,
        end: float,
        unit: MergeUnit = MergeUnit.TIME,
        sys_metrics_filter: Mapping[str, Any] | None = None,
    ) -> str:
        """Write what lies between two times (us since the epoch) or steps (the second not included).

        Parameters
        ----------
        sys_metrics_filter
            ``{"lowgpu": ()}``, the default, marks where a GPU was less than 85 percent busy;
            ``{"lowgpu": 50}`` less than 50. Empty marks nothing.

        Returns
        -------
        str
            Path of the trace.
        """
        if unit is MergeUnit.STEP:
            system, framework = self._frames.get_profiler_data_by_step(int(start), int(end))
        else:
            system, framework = self._frames.get_profiler_data_by_time(int(start), int(end))
        events = [*_spans(framework), *_readings(system)]
        wanted = {"lowgpu": ()} if sys_metrics_filter is None else sys_metrics_filter
        if "lowgpu" in wanted:
            events += _idle(system, wanted["lowgpu"] or _LOW_GPU)
        last = int(framework["end_time_us"].max()) if len(framework) else int(end)
        target = self._output / f"{last}_merged_timeline.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(events), encoding="utf-8")
        return str(target)


def _spans(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for row in frame.to_dict("records"):
        yield {
            "name": row["framework_metric"],
            "cat": row["process"],
            "ph": "X",
            "ts": int(row["start_time_us"]),
            "dur": int(row["end_time_us"] - row["start_time_us"]),
            "pid": row["nodeID"],
            "tid": int(row["tid"]),
            "args": {"step_num": int(row["step"])},
        }


def _readings(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for row in frame.to_dict("records"):
        yield {
            "name": f"{row['system_metric']} {row['dimension']}",
            "ph": "C",
            "ts": int(row["timestamp_us"]),
            "pid": row["nodeID"],
            "args": {"value": float(row["value"])},
        }


def _idle(frame: pd.DataFrame, below: float) -> Iterator[dict[str, Any]]:
    low = frame[(frame["dimension"] == "GPUUtilization") & (frame["value"] < below)]
    for row in low.to_dict("records"):
        yield {
            "name": f"{row['system_metric']} is {row['value']:.0f} % busy",
            "ph": "i",
            "s": "g",
            "ts": int(row["timestamp_us"]),
            "pid": row["nodeID"],
            "tid": 0,
        }
