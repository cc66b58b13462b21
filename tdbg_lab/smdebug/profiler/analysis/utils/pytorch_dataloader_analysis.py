"""How long data loading takes: of the predecessor's timelines, and of the ``data`` phase of our runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from tdbg_lab.smdebug.profiler.analysis.notebook_utils.timeline_charts import TimelineCharts
    from tdbg_lab.smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame

__all__ = ["PT_dataloader_analysis"]

_OUTLIER: Final = 2.0
"""Times the median."""
_ITERATORS: Final = ("_MultiProcessingDataLoaderIter.__init__", "_SingleProcessDataLoaderIter.__init__")


class PT_dataloader_analysis:  # noqa: N801 - the predecessor's name
    """Says how data loading goes, and gives what took at least twice the median.

    Parameters
    ----------
    pandas_frame
        Metrics of a run or of a profiler folder.
    """

    def __init__(self, pandas_frame: PandasFrame) -> None:
        self.pd_data_frame = pandas_frame
        get = pandas_frame.get_all_dataloader_metrics
        self.dataIter_metric = get([".*DataLoaderIter::GetNext", "^data$"])
        self.initialize_metric = get(["DataLoaderIterInitialize", *_ITERATORS])
        self.dataWorker_metric = get(["DataLoaderWorker"])
        self.analyze_dataIter = len(self.dataIter_metric) > 0
        self.analyze_initializer = len(self.initialize_metric) > 0
        self.analyze_workers = len(self.dataWorker_metric) > 0

    def analyze_dataloaderIter_initialization(self) -> pd.DataFrame | None:  # noqa: N802 - as the others here
        """Iterators of data loaders; None when none was seen."""
        return self._said(self.initialize_metric, "Data loaders that began", "to begin")

    def analyze_dataloaderWorkers(self) -> pd.DataFrame | None:  # noqa: N802
        """Worker processes; None when none was seen."""
        return self._said(self.dataWorker_metric, "Worker processes", "of work")

    def analyze_dataloader_getnext(self) -> pd.DataFrame | None:
        """Waits for the next batch; None when none was seen."""
        return self._said(self.dataIter_metric, "Batches that were waited for", "of waiting")

    def analyze_batchtime(self) -> pd.DataFrame | None:
        """Times from batch to batch (``BatchTime_in_seconds``); None when no batch was seen."""
        frame = self.dataIter_metric.sort_values(by=["nodeID", "pid", "start_time_us"])
        before = frame.groupby(["nodeID", "pid"])["start_time_us"].shift()
        frame = frame.assign(
            previous_batch_start=before, BatchTime_in_seconds=(frame["start_time_us"] - before) / 1e6
        ).dropna(subset=["previous_batch_start"])
        columns = ["previous_batch_start", "start_time", "BatchTime_in_seconds", "worker_id"]
        return self._said(frame, "Times from batch to batch", "a batch", "BatchTime_in_seconds", columns)

    def plot_the_window(
        self,
        start_timestamp: float,
        end_timestamp: float,
        select_events: Sequence[str] = (".*",),
        select_dimensions: Sequence[str] = (".*",),
    ) -> TimelineCharts:
        """System metrics and phases between two times, us since the epoch."""
        from tdbg_lab.smdebug.profiler.analysis.notebook_utils.timeline_charts import TimelineCharts

        return TimelineCharts(
            self.pd_data_frame.system_metrics_reader,
            self.pd_data_frame.framework_metrics_reader,
            starttime=start_timestamp,
            endtime=end_timestamp,
            select_events=select_events,
            select_dimensions=select_dimensions,
        )

    def _said(
        self,
        frame: pd.DataFrame,
        what: str,
        of_what: str,
        column: str = "duration_us",
        columns: list[str] | None = None,
    ) -> pd.DataFrame | None:
        """Print number, median and maximum; give the outliers, longest first."""
        if not len(frame):
            print(f"{what}: none was recorded.")  # noqa: T201 - what this class is for
            return None
        unit = "us" if column == "duration_us" else "s"
        median, most = frame[column].median(), frame[column].max()
        text = f"{what}: {len(frame)}; median {median:g} {unit} {of_what}, at most {most:g} {unit}."
        print(text)  # noqa: T201
        outliers = frame[frame[column] >= _OUTLIER * median].sort_values(by=column, ascending=False)
        chosen = columns or ["start_time", "end_time", column, "worker_id"]
        return outliers[chosen].reset_index(drop=True)
