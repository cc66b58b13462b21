"""Profiler data as data frames, with the predecessor's columns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from tdbg_lab.smdebug.core.utils import match_inc
from tdbg_lab.smdebug.exceptions import SMDebugValueError
from tdbg_lab.smdebug.profiler.algorithm_metrics_reader import LocalAlgorithmMetricsReader, during
from tdbg_lab.smdebug.profiler.system_metrics import LocalSystemMetricsReader, described
from tdbg_lab.smdebug.profiler.utils import (
    to_us,
    to_us_since_epoch,
    us_since_epoch_to_human_readable_time,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["PandasFrame"]

_SYSTEM = ("timestamp", "timestamp_us", "value", "system_metric", "dimension", "nodeID", "type")
_FRAMEWORK = (
    "start_time",
    "end_time",
    "start_time_us",
    "end_time_us",
    "tid",
    "pid",
    "framework_metric",
    "step",
    "bytes",
    "process",
    "nodeID",
)


class PandasFrame:
    """System and framework metrics of a run of tdbg-lab, or of the predecessor's profiler folder.

    Parameters
    ----------
    path
        The folder.
    use_in_memory_cache, scan_interval
        Kept for the predecessor's scripts.

    Raises
    ------
    NotFoundError
        If there is nothing of that kind.
    """

    def __init__(
        self, path: str | Path, use_in_memory_cache: bool = False, scan_interval: int = 5_000_000_000
    ) -> None:
        del use_in_memory_cache, scan_interval
        self.system_metrics_reader = self._reader = LocalSystemMetricsReader(path)
        self._run = self._reader.run
        self._path = path

    @cached_property
    def framework_metrics_reader(self) -> LocalAlgorithmMetricsReader:
        """A reader of the same folder."""
        return LocalAlgorithmMetricsReader(self._path)

    def get_all_system_metrics(self, selected_system_metrics: Sequence[str] = ()) -> pd.DataFrame:
        """Readings, one a row; of devices that match one of the patterns when there are any."""
        return self._system(None, None, selected_system_metrics)

    def get_all_framework_metrics(self, selected_framework_metrics: Sequence[str] = ()) -> pd.DataFrame:
        """Intervals, one a row; of names or phases that match one of the patterns, if any."""
        return self._framework(None, selected_framework_metrics)

    def get_all_dataloader_metrics(self, selected_framework_metrics: Sequence[str] = ()) -> pd.DataFrame:
        """Intervals of data loading: names with ``DataLoader``, and those of phase ``data``.

        Beside the columns of framework metrics there are ``duration_us`` and ``worker_id``, the process.
        """
        frame = self.get_all_framework_metrics()
        loading = frame["framework_metric"].str.contains("DataLoader") | (frame["process"] == "data")
        frame = frame[loading]
        frame = frame.assign(
            duration_us=frame["end_time_us"] - frame["start_time_us"], worker_id=frame["pid"]
        )
        return _matching(frame, selected_framework_metrics, "framework_metric", "process")

    def get_framework_metrics_by_timesteps(
        self, timestep_list: Sequence[int | str] = (), selected_framework_metrics: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Intervals that are going on at any of some times: us, or as the frames print them."""
        times = [to_us_since_epoch(one) for one in timestep_list]
        return self._during([(one, one) for one in times], selected_framework_metrics)

    def get_framework_metrics_by_begin_and_end_timesteps(
        self,
        begin_timestep_list: Sequence[int | str],
        end_timestep_list: Sequence[int | str],
        selected_framework_metrics: Sequence[str] = (),
    ) -> pd.DataFrame:
        """Intervals that are going on between any of some pairs of times: us, or as the frames print them.

        Raises
        ------
        SMDebugValueError
            If there are not as many ends as beginnings.
        """
        if len(begin_timestep_list) != len(end_timestep_list):
            raise SMDebugValueError(
                f"There are {len(begin_timestep_list)} times to begin and {len(end_timestep_list)} to end; "
                "expected pairs."
            )
        begins, ends = (
            [to_us_since_epoch(one) for one in times] for times in (begin_timestep_list, end_timestep_list)
        )
        return self._during(list(zip(begins, ends, strict=True)), selected_framework_metrics)

    def _during(self, pairs: Sequence[tuple[int, int]], wanted: Sequence[str]) -> pd.DataFrame:
        frame = self.get_all_framework_metrics(wanted)
        chosen = pd.Series(data=False, index=frame.index)
        for begin, end in pairs:
            chosen |= (frame["start_time_us"] <= end) & (frame["end_time_us"] >= begin)
        return frame[chosen].reset_index(drop=True)

    def get_profiler_data_by_time(
        self,
        start_time_us: int,
        end_time_us: int,
        cache_metrics: bool = False,
        selected_framework_metrics: Sequence[str] = (),
        selected_system_metrics: Sequence[str] = (),
        get_framework_metrics: bool = True,
        get_system_metrics: bool = True,
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Readings between two times, us since the epoch, and intervals that are going on then.

        What is not to be got is an empty frame.
        """
        del cache_metrics
        between = start_time_us * 1000, end_time_us * 1000
        nothing = 0, -1
        return (
            self._system(*(between if get_system_metrics else nothing), selected_system_metrics),
            self._framework(
                (start_time_us, end_time_us) if get_framework_metrics else nothing,
                selected_framework_metrics,
            ),
        )

    def get_profiler_data_by_step(
        self, start_step: int, end_step: int, cache_metrics: bool = False
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Framework metrics of the steps from the first on and before the second, and what was then."""
        del cache_metrics
        framework = self.get_all_framework_metrics()
        framework = framework[(framework["step"] >= start_step) & (framework["step"] < end_step)]
        if not len(framework):
            return self._system(0, -1, ()), framework.reset_index(drop=True)
        first, last = framework["start_time_us"].min(), framework["end_time_us"].max()
        return self._system(int(first) * 1000, int(last) * 1000, ()), framework.reset_index(drop=True)

    def _system(self, start_ns: int | None, end_ns: int | None, wanted: Sequence[str]) -> pd.DataFrame:
        self._run.refresh()
        frame = self._reader.samples(start_ns, end_ns)
        kinds = [described(str(metric)) for metric in frame["metric"]]
        us = to_us(frame["time_ns"])
        found = pd.DataFrame(
            {
                "timestamp": [us_since_epoch_to_human_readable_time(int(one)) for one in us],
                "timestamp_us": us,
                "value": frame["value"],
                "system_metric": [
                    str(device) or kind for device, (kind, _) in zip(frame["device"], kinds, strict=True)
                ],
                "dimension": [dimension for _, dimension in kinds],
                "nodeID": [f"algo-{int(rank) + 1}" for rank in frame["rank"]],
                "type": [kind for kind, _ in kinds],
            },
            columns=list(_SYSTEM),
        )
        return _matching(found, wanted, "system_metric")

    def _framework(self, between_us: tuple[int, int] | None, wanted: Sequence[str]) -> pd.DataFrame:
        self._run.refresh()
        frame = self._run.spans(end_ns=None if between_us is None else (between_us[1] + 1) * 1000)
        if between_us is not None:
            frame = during(frame, *between_us)
        start, end = to_us(frame["start_ns"]), to_us(frame["start_ns"] + frame["duration_ns"])
        found = pd.DataFrame(
            {
                "start_time": [us_since_epoch_to_human_readable_time(int(one)) for one in start],
                "end_time": [us_since_epoch_to_human_readable_time(int(one)) for one in end],
                "start_time_us": start,
                "end_time_us": end,
                "tid": frame["thread"],
                "pid": frame["rank"],
                "framework_metric": frame["name"],
                "step": frame["step"],
                "bytes": -1,
                "process": frame["phase"],
                "nodeID": [f"{int(rank)}-algo-{int(rank) + 1}" for rank in frame["rank"]],
            },
            columns=list(_FRAMEWORK),
        )
        return _matching(found, wanted, "framework_metric", "process")


def _matching(frame: pd.DataFrame, wanted: Sequence[str], *columns: str) -> pd.DataFrame:
    if wanted:
        rows = zip(*(frame[column].astype(str) for column in columns), strict=True)
        frame = frame[[any(match_inc(name, wanted) for name in row) for row in rows]]
    return frame.reset_index(drop=True)
