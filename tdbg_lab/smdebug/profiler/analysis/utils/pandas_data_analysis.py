"""Statistics of the frames that `PandasFrame` gives, with the predecessor's columns."""

from __future__ import annotations

from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["JobStats", "PandasFrameAnalysis", "Resource", "StatsBy"]

_FIGURES = ("mean", "min", "max", "50%", "95%", "99%")
_NAMES = ("mean", "min", "max", "p50", "p95", "p99")
_RANGES = ((90, 100), (10, 90), (0, 10))
_STEP = "Step:ModeKeys"
_WHOLE = "Step:ModeKeys.TRAIN"
_One = TypeVar("_One")


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


class JobStats(dict[str, Any]):
    """Facts about a job, shown as a table."""

    def __repr__(self) -> str:
        return str(pd.DataFrame.from_dict(dict(self), orient="index"))

    def _repr_html_(self) -> str:
        return str(pd.DataFrame.from_dict(dict(self), orient="index").to_html())


class PandasFrameAnalysis:
    """Answers questions about one job. Times and durations are us.

    Where no step was recorded as such, as in runs of tdbg-lab, a step lasts from the first of its intervals
    to the last, and is called ``Step:ModeKeys.TRAIN``.

    Parameters
    ----------
    system_df, framework_df
        From `PandasFrame.get_all_system_metrics` and `get_all_framework_metrics`. They stay as they are.
    """

    def __init__(self, system_df: pd.DataFrame, framework_df: pd.DataFrame) -> None:
        self.sys_metrics_df = system_df
        self.framework_metrics_df = framework_df.assign(
            duration_us=framework_df["end_time_us"] - framework_df["start_time_us"]
        )

    def get_job_statistics(self) -> JobStats:
        """When the job and its training began and ended, and what part of it was training.

        A job is what readings and phases cover together, for the first reading may come after the first
        step; without phases it is empty.
        """
        frame, system, steps = self.framework_metrics_df, self.sys_metrics_df, self._steps()
        if not len(frame) or not len(steps):
            return JobStats()
        begin, start_time = int(frame["start_time_us"].min()), frame["start_time"].min()
        end, end_time = int(frame["end_time_us"].max()), frame["end_time"].max()
        if len(system):
            times, texts = system["timestamp_us"], system["timestamp"]
            if int(times.min()) < begin:
                begin, start_time = int(times.min()), texts.min()
            if int(times.max()) > end:
                end, end_time = int(times.max()), texts.max()
        first, last = int(steps["start_time_us"].min()), int(frame["end_time_us"].max())
        at = int((frame["start_time_us"] - first).abs().to_numpy().argmin())
        parts = {"initialization": first - begin, "training_loop": last - first, "finalization": end - last}
        return JobStats(
            start_time=start_time,
            end_time=end_time,
            job_duration=end - begin,
            training_loop_start=frame["start_time"].iloc[at],
            training_loop_end=frame["end_time"].max(),
            training_loop_duration=parts["training_loop"],
            initialization=parts["initialization"],
            finalization=parts["finalization"],
            **{f"{name}_%": 100.0 * part / max(1, end - begin) for name, part in parts.items()},
        )

    def get_step_statistics(self, by: StatsBy = StatsBy.TRAINING_PHASE) -> pd.DataFrame:
        """Mean, extremes and quantiles of what steps take: as a whole, or of them each metric or process.

        Raises
        ------
        ValueError
            If `by` is no `StatsBy`.
        """
        if not isinstance(by, StatsBy):
            raise ValueError(f"by is {by!r}; expected one of {', '.join(map(str, StatsBy))}.")  # noqa: TRY004
        whole = by is StatsBy.TRAINING_PHASE
        column = "framework_metric" if whole else by.value
        frame = self._steps() if whole else self.framework_metrics_df
        spread = frame.groupby(["step", column]).agg({"start_time_us": "min", "end_time_us": "max"})
        durations = spread["end_time_us"] - spread["start_time_us"]
        found = _described(durations.groupby(level=column)).reset_index()
        found.columns = pd.Index([by.value, *(f"duration_{name}_us" for name in _NAMES)])
        return found

    def get_utilization_stats(
        self,
        resource: Resource | Sequence[Resource] | None = None,
        by: StatsBy | None = None,
        phase: str | Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Mean, extremes and quantiles of readings by resource and node.

        Parameters
        ----------
        by
            ``StatsBy.TRAINING_PHASE`` for each phase, and the time before, between and after.
        phase
            Phases, as `get_training_phase_intervals` takes them.
        """
        phased = by is StatsBy.TRAINING_PHASE
        frame = self.sys_metrics_df
        if phased:
            frame = frame.assign(phase=self._phases_at(frame["timestamp_us"], phase))
        keys = ["phase", "nodeID"] if phased else ["nodeID"]
        found = []
        for one in _listed(resource, list(Resource)):
            readings = frame[frame["type"].str.contains(one.value, regex=False)]
            if len(readings):
                stats = _described(readings.groupby(keys)["value"]).reset_index()
                stats.insert(0, "Resource", one.value)
                found.append(stats)
        names = ["Resource", *(["Training_phase"] if phased else []), "nodeID"]
        names += [f"utilization_{name}" for name in _NAMES]
        if not found:
            return pd.DataFrame(columns=names)
        every = pd.concat(found, ignore_index=True)
        every.columns = pd.Index(names)
        return every

    def get_device_usage_stats(
        self,
        device: Resource | Sequence[Resource] | None = None,
        utilization_ranges: Sequence[tuple[float, float]] | None = None,
    ) -> pd.DataFrame:
        """How many readings of a device lie in each range, both ends of which count; the first that fits.

        Columns are ``type``, ``nodeID`` and the ranges, by their lower end.

        Raises
        ------
        ValueError
            If a range is no pair.
        """
        ranges = [tuple(one) for one in (_RANGES if utilization_ranges is None else utilization_ranges)]
        if not ranges or any(len(one) != 2 for one in ranges):
            raise ValueError(f"utilization_ranges is {utilization_ranges!r}; expected pairs such as (0, 10).")
        wanted = [one.value for one in _listed(device, [Resource.CPU, Resource.GPU])]
        frame = self.sys_metrics_df
        frame = frame[frame["type"].isin(wanted)]
        rows = []
        for (kind, node), readings in frame.groupby(["type", "nodeID"])["value"]:
            held = [next((one for one in ranges if one[0] <= value <= one[1]), None) for value in readings]
            counts = [held.count(one) for one in sorted(ranges)]
            if any(counts):
                rows.append([kind, node, *counts])
        return pd.DataFrame(rows, columns=pd.Index(["type", "nodeID", *sorted(ranges)], tupleize_cols=False))

    def get_training_phase_intervals(self, phase: str | Sequence[str] | None = None) -> pd.DataFrame | None:
        """Intervals of phases, and the time before, between and after them.

        Columns are ``start_time_us``, ``end_time_us`` and ``phase``.

        Parameters
        ----------
        phase
            Names of phases or of metrics; by default whole steps. None of them known gives None.
        """
        frame = self._steps()
        if phase is not None:
            chosen = [phase] if isinstance(phase, str) else list(phase)
            every = pd.concat([frame, self.framework_metrics_df]).drop_duplicates(
                ["start_time_us", "end_time_us", "framework_metric", "process"]
            )
            frame = every[every["framework_metric"].isin(chosen) | every["process"].isin(chosen)]
            by_name = frame["framework_metric"].isin(chosen)
            frame = frame.assign(framework_metric=frame["framework_metric"].where(by_name, frame["process"]))
        if not len(frame):
            return None
        frame = frame.sort_values("start_time_us", kind="stable")
        columns = (frame[name].tolist() for name in ("start_time_us", "end_time_us", "framework_metric"))
        phases = list(zip(*columns, strict=True))
        if len({name for *_, name in phases}) > 1:
            phases = _joined(phases)
        rows = [phases[0]]
        for before, after in pairwise(phases):
            names = sorted([before[2], after[2]])
            rows += [(before[1] + 1, after[0] - 1, f"Between {names[0]} and {names[1]}"), after]
        times = self.sys_metrics_df["timestamp_us"]
        if len(times):
            rows.insert(0, (int(times.min()), rows[0][0] - 1, f"Before {rows[0][2]}"))
            rows.append((rows[-1][1] + 1, int(times.max()), f"After {rows[-1][2]}"))
        return pd.DataFrame(rows, columns=["start_time_us", "end_time_us", "phase"])

    def _steps(self) -> pd.DataFrame:
        """Whole steps, as intervals."""
        frame = self.framework_metrics_df
        recorded = frame[frame["framework_metric"].str.contains(_STEP, regex=False)]
        if len(recorded):
            return recorded
        numbered = frame[frame["step"] >= 0]
        ends = numbered.groupby("step").agg({"start_time_us": "min", "end_time_us": "max"}).reset_index()
        return ends.assign(framework_metric=_WHOLE, process=_WHOLE)

    def _phases_at(self, times_us: pd.Series[int], phase: str | Sequence[str] | None) -> pd.Series[Any]:
        """Phase at each time: of the intervals around it the last; nothing outside of all."""
        found: pd.Series[Any] = pd.Series(index=times_us.index, dtype=object)
        intervals = self.get_training_phase_intervals(phase)
        for start, end, name in () if intervals is None else intervals.itertuples(index=False):
            found[times_us.between(start, end)] = name
        return found


def _joined(phases: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Intervals of one phase that follow each other, as one."""
    found = [phases[0]]
    for start, end, name in phases[1:]:
        if name == found[-1][2]:
            found[-1] = found[-1][0], max(end, found[-1][1]), name
        else:
            found.append((start, end, name))
    return found


def _listed(given: _One | Sequence[_One] | None, default: list[_One]) -> list[_One]:
    if given is None:
        return default
    return [given] if isinstance(given, Enum) else list(given)  # type: ignore[arg-type]


def _described(groups: Any) -> pd.DataFrame:
    stats: pd.DataFrame = groups.describe(percentiles=[0.5, 0.95, 0.99])
    return stats[list(_FIGURES)]
