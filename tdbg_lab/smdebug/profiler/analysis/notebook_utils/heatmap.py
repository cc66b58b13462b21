"""How busy each device was over time, as colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.smdebug.profiler.analysis.notebook_utils.chart import NotebookChart
from tdbg_lab.smdebug.profiler.analysis.notebook_utils.selection import (
    chosen_metrics,
    matching,
    metric_series,
)
from tdbg_lab.views.labels import safe
from tdbg_lab.views.palette import SEQUENTIAL, gamma
from tdbg_lab.views.style import colour_bar, empty, new_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tdbg_lab.smdebug.profiler.analysis.notebook_utils.selection import Series
    from tdbg_lab.smdebug.profiler.system_metrics import LocalSystemMetricsReader

__all__ = ["Heatmap"]

_COLUMNS = 400


class Heatmap(NotebookChart):
    """A row for each device of each selected dimension; it shows itself as soon as it is made.

    Parameters
    ----------
    select_metrics
        Patterns of whole rows (``CPUUtilization-nodeid:algo-1 cpu0``); all when there are none.
    starttime, endtime
        Us since the epoch.
    plot_height
        Pixels.

    Raises
    ------
    SMDebugValueError
        If a pattern is no regular expression.
    """

    def __init__(
        self,
        metrics_reader: LocalSystemMetricsReader,
        select_metrics: Sequence[str] = (),
        starttime: float = 0,
        endtime: float | None = None,
        select_dimensions: Sequence[str] = (".*CPU", ".*GPU"),
        select_events: Sequence[str] = (".*",),
        plot_height: int = 350,
        show_workers: bool = True,
    ) -> None:
        super().__init__()
        self.metrics_reader = metrics_reader
        self.select_metrics = select_metrics
        self.select_dimensions = select_dimensions
        self.select_events = select_events
        self.plot_height = plot_height
        self.show_workers = show_workers
        self._start = starttime
        self.rows: dict[str, Series] = {}
        if endtime is None:
            endtime = metrics_reader.get_timestamp_of_latest_available_file() + 1
        self.update_data(endtime)

    def update_data(self, current_timestamp: float) -> None:
        """Draw what there is up to a time, us since the epoch."""
        self.metrics_reader.refresh_event_file_list()
        found = metric_series(
            self.metrics_reader, self._start, current_timestamp, show_workers=self.show_workers
        )
        chosen = chosen_metrics(found, self.select_dimensions, self.select_events)
        rows = {f"{dimension} {event}": one for (dimension, event), one in chosen.items()}
        self.rows = {name: rows[name] for name in matching(self.select_metrics or (".*",), rows)}
        self.create_plot()

    def create_plot(self) -> None:
        """Draw what was read."""
        if not self.rows:
            self._show(empty("Nothing fits the selection.", "Choose other dimensions, or wait for data."))
            return
        zero = min(one.seconds[0] for one in self.rows.values())
        last = max(one.seconds[-1] for one in self.rows.values())
        edges = np.linspace(0.0, max(last - zero, 1e-3), self._columns() + 1)
        trace: dict[str, Any] = {
            "type": "heatmap",
            "x": (edges[1:] + edges[:-1]) / 2,
            "y": [safe(name) for name in self.rows],
            "z": np.stack([_means(one, zero, edges) for one in self.rows.values()]).astype(np.float32),
            "zmin": 0,
            "zmax": 100,
            "colorscale": gamma(SEQUENTIAL, 1.0),
            "colorbar": colour_bar("Load (%)"),
            "hovertemplate": "%{y} at %{x:.1f} s: <b>%{z:.0f}%</b><extra></extra>",
        }
        figure = new_figure([trace])
        figure.update_layout(
            height=self.plot_height,
            xaxis={"title": {"text": "Time since start (s)"}},
            yaxis={"type": "category", "autorange": "reversed", "showgrid": False},
        )
        self._show(figure)

    def _columns(self) -> int:
        """As many as there are readings, up to a number that a screen can show."""
        return min(_COLUMNS, max(len(one.seconds) for one in self.rows.values()))


def _means(series: Series, zero: float, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the readings between the edges, shape ``(T,)``; NaN where there is none."""
    at = np.clip(np.searchsorted(edges, series.seconds - zero, "right") - 1, 0, len(edges) - 2)
    sums = np.bincount(at, weights=series.values, minlength=len(edges) - 1)
    counts = np.bincount(at, minlength=len(edges) - 1)
    means: NDArray[np.float64] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return means
