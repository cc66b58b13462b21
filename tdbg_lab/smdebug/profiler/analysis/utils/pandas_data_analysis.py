"""Statistics of the frames that `PandasFrame` gives."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PandasFrameAnalysis", "Resource", "StatsBy"]

_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_RANGES = ((90, 100), (10, 90), (0, 10))


class StatsBy(Enum):
    """What the durations of steps are grouped by."""

    TRAINING_PHASE = "training_phase"
    FRAMEWORK_METRICS = "framework_metric"
    PROCESS = "process"


class Resource(Enum):
    """What can be busy."""

    CPU = "cpu"
    GPU = "gpu"
    IO = "i/o"
    NETWORK = "network"
    MEMORY = "memory"


_COLUMN = {
    StatsBy.TRAINING_PHASE: "process",
    StatsBy.FRAMEWORK_METRICS: "framework_metric",
    StatsBy.PROCESS: "process",
}


class PandasFrameAnalysis:
    """Answers questions about one job.

    Parameters
    ----------
    system_df, framework_df
        From `PandasFrame.get_all_system_metrics` and `get_all_framework_metrics`.
    """

    def __init__(self, system_df: pd.DataFrame, framework_df: pd.DataFrame) -> None:
        self.sys_metrics_df = system_df
        self.framework_metrics_df = framework_df

    def get_job_statistics(self) -> dict[str, Any]:
        """Beginning, end and duration (s) of the job, of its first and its last step."""
        frame = self.framework_metrics_df
        if not len(frame):
            return {}
        steps = frame[frame["step"] >= 0]
        found: dict[str, Any] = {
            "start_time": frame["start_time"].iloc[int(frame["start_time_us"].to_numpy().argmin())],
            "end_time": frame["end_time"].iloc[int(frame["end_time_us"].to_numpy().argmax())],
            "job_duration": _seconds(frame),
        }
        if len(steps):
            first, last = int(steps["step"].min()), int(steps["step"].max())
            found["training_loop_duration"] = _seconds(steps)
            found["first_step"], found["last_step"] = first, last
            found["initialization_duration"] = (
                int(steps["start_time_us"].min()) - int(frame["start_time_us"].min())
            ) / 1e6
        return found

    def get_step_statistics(self, by: StatsBy = StatsBy.TRAINING_PHASE) -> pd.DataFrame:
        """Mean, extremes and quantiles of durations, us, by phase, metric or process.

        Raises
        ------
        ValueError
            If `by` is no `StatsBy`.
        """
        if not isinstance(by, StatsBy):
            raise ValueError(f"by is {by!r}; expected one of {', '.join(map(str, StatsBy))}.")  # noqa: TRY004
        frame = self.framework_metrics_df
        durations = frame["end_time_us"] - frame["start_time_us"]
        groups = durations.groupby(frame[_COLUMN[by]])
        return _described(groups).reset_index(names=by.value)

    def get_utilization_stats(
        self, resource: Resource | Sequence[Resource] | None = None, by: StatsBy | None = None
    ) -> pd.DataFrame:
        """Mean, extremes and quantiles of readings by resource, dimension and node; by phase when asked."""
        wanted = (
            list(Resource) if resource is None else [resource] if isinstance(resource, Resource) else resource
        )
        frame = self.sys_metrics_df
        frame = frame[frame["type"].isin([one.value for one in wanted])]
        columns = ["type", "dimension", "nodeID"]
        if by is StatsBy.TRAINING_PHASE:
            frame = frame.assign(training_phase=self._phases_at(frame["timestamp_us"]))
            columns = ["training_phase", *columns]
        if not len(frame):
            return pd.DataFrame(columns=[*columns, "mean", "min", "max", *_QUANTILES])
        return _described(frame.groupby(columns)["value"]).reset_index()

    def get_device_usage_stats(
        self,
        device: Resource | Sequence[Resource] | None = None,
        utilization_ranges: Sequence[tuple[float, float]] = _RANGES,
    ) -> pd.DataFrame:
        """Share of readings (percent) of CPU or GPU in each range, whose upper end does not count but 100."""
        wanted = [Resource.CPU, Resource.GPU] if device is None else device
        wanted = [wanted] if isinstance(wanted, Resource) else wanted
        rows = []
        for one in wanted:
            frame = self.sys_metrics_df
            frame = frame[(frame["type"] == one.value) & frame["dimension"].str.endswith("PUUtilization")]
            for node, of in frame.groupby("nodeID")["value"]:
                row: dict[str, Any] = {"Resource": one.value, "nodeID": node}
                for low, high in utilization_ranges:
                    inside = (of >= low) & ((of < high) | (high >= 100))
                    row[f"{low}-{high}"] = 100.0 * float(inside.mean())
                rows.append(row)
        names = [f"{low}-{high}" for low, high in utilization_ranges]
        return pd.DataFrame(rows, columns=["Resource", "nodeID", *names])

    def get_training_phase_intervals(self, phase: str | Sequence[str] | None = None) -> pd.DataFrame:
        """Intervals of phases, by beginning: ``start_time_us``, ``end_time_us``, ``phase``."""
        frame = self.framework_metrics_df
        if phase is not None:
            frame = frame[frame["process"].isin([phase] if isinstance(phase, str) else list(phase))]
        found = frame[["start_time_us", "end_time_us", "process"]].rename(columns={"process": "phase"})
        return found.sort_values("start_time_us").reset_index(drop=True)

    def _phases_at(self, times_us: pd.Series[int]) -> list[str]:
        """Phase at each time: of the intervals around it, the one that began last; else ``none``."""
        intervals = self.get_training_phase_intervals()
        found = []
        for time in times_us:
            around = intervals[(intervals["start_time_us"] <= time) & (intervals["end_time_us"] >= time)]
            found.append(str(around["phase"].iloc[-1]) if len(around) else "none")
        return found


def _seconds(frame: pd.DataFrame) -> float:
    return (int(frame["end_time_us"].max()) - int(frame["start_time_us"].min())) / 1e6


def _described(groups: Any) -> pd.DataFrame:
    parts = {"mean": groups.mean(), "min": groups.min(), "max": groups.max()}
    parts.update({name: groups.quantile(q) for name, q in _QUANTILES.items()})
    return pd.DataFrame(parts)
