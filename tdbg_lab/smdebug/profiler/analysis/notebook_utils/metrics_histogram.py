"""Which loads of the machine were frequent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.smdebug.profiler.analysis.notebook_utils.chart import NotebookChart, histogram, tiles
from tdbg_lab.smdebug.profiler.analysis.notebook_utils.selection import chosen_metrics, metric_series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.smdebug.profiler.analysis.notebook_utils.selection import Series
    from tdbg_lab.smdebug.profiler.system_metrics import LocalSystemMetricsReader

__all__ = ["MetricsHistogram"]

_BINS = 50


class MetricsHistogram(NotebookChart):
    """A histogram of each system metric; `plot` draws them."""

    def __init__(self, metrics_reader: LocalSystemMetricsReader) -> None:
        super().__init__()
        self.metrics_reader = metrics_reader
        self.system_metrics: dict[tuple[str, str], Series] = {}
        self.select_dimensions: Sequence[str] = (".*",)
        self.select_events: Sequence[str] = (".*",)
        self.show_workers = True
        self._start: float = 0

    def plot(
        self,
        starttime: float = 0,
        endtime: float | None = None,
        select_dimensions: Sequence[str] = (".*",),
        select_events: Sequence[str] = (".*",),
        show_workers: bool = True,
    ) -> None:
        """Draw the metrics whose dimension and event fit, between two times, us since the epoch.

        Raises
        ------
        SMDebugValueError
            If a pattern is no regular expression.
        """
        self.select_dimensions, self.select_events = select_dimensions, select_events
        self.show_workers, self._start = show_workers, starttime
        if endtime is None:
            endtime = self.metrics_reader.get_timestamp_of_latest_available_file() + 1
        self.update_data(endtime)

    def clear(self) -> None:
        """Forget what was read."""
        self.system_metrics = {}

    def update_data(self, current_timestamp: float) -> None:
        """Draw what there is up to a time, us since the epoch."""
        self.metrics_reader.refresh_event_file_list()
        series = metric_series(
            self.metrics_reader, self._start, current_timestamp, show_workers=self.show_workers
        )
        self.system_metrics = chosen_metrics(series, self.select_dimensions, self.select_events)
        self.create_plot()

    def create_plot(self) -> None:
        """Draw what was read."""
        bars = {f"{name} {dimension}": _bars(dimension, one) for (dimension, name), one in self._items()}
        self._show(tiles(bars, "Value"))

    def _items(self) -> list[tuple[tuple[str, str], Series]]:
        return list(self.system_metrics.items())


def _bars(dimension: str, series: Series) -> dict[str, Any]:
    finite = series.values[np.isfinite(series.values)]
    percent = "Utilization" in dimension or "Percent" in dimension
    counts, edges = np.histogram(finite, _BINS, (0.0, 100.0) if percent else None)
    return histogram(counts, edges, "%{x:.4~g}: <b>%{y}</b> readings<extra></extra>")
