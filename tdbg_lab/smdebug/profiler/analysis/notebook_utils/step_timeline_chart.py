"""How long each step took, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.smdebug.profiler.analysis.notebook_utils.chart import NotebookChart
from tdbg_lab.smdebug.profiler.analysis.notebook_utils.selection import step_series
from tdbg_lab.views.labels import safe
from tdbg_lab.views.palette import pick
from tdbg_lab.views.style import empty, new_figure

if TYPE_CHECKING:
    from tdbg_lab.smdebug.profiler.algorithm_metrics_reader import LocalAlgorithmMetricsReader
    from tdbg_lab.smdebug.profiler.analysis.notebook_utils.selection import Series

__all__ = ["StepTimelineChart"]


class StepTimelineChart(NotebookChart):
    """A line for the steps of each worker; it shows itself as soon as it is made.

    Parameters
    ----------
    width
        Steps in sight at first, the last ones.
    """

    def __init__(self, metrics_reader: LocalAlgorithmMetricsReader, width: int = 1000) -> None:
        super().__init__()
        self.metrics_reader = metrics_reader
        self.width = width
        self.steps: dict[str, Series] = {}
        self.last_timestamp: float = 0
        self.update_data(metrics_reader.get_timestamp_of_latest_available_file() + 1)

    def update_data(self, current_timestamp: float) -> None:
        """Draw what there is up to a time, us since the epoch."""
        self.metrics_reader.refresh_event_file_list()
        self.last_timestamp = current_timestamp
        self.steps = step_series(self.metrics_reader, 0, current_timestamp)
        self.create_plot()

    def create_plot(self) -> None:
        """Draw what was read."""
        if not self.steps:
            self._show(empty("No step was timed so far.", "A step shows when the next one begins."))
            return
        zero = min(one.seconds[0] for one in self.steps.values())
        last = max(one.seconds[-1] for one in self.steps.values())
        first = min(one.seconds[-self.width :][0] for one in self.steps.values())
        traces = [
            {
                "type": "scattergl",
                "mode": "lines+markers",
                "name": safe(name),
                "x": one.seconds - zero,
                "y": one.values * 1e3,
                "marker": {"size": 4, "color": pick(at)},
                "line": {"width": 1, "color": pick(at)},
                "hovertemplate": "%{x:.2f} s: <b>%{y:.4~g} ms</b><extra></extra>",
            }
            for at, (name, one) in enumerate(self.steps.items())
        ]
        figure = new_figure(traces)
        figure.update_layout(
            height=300,
            xaxis={"title": {"text": "Time since start (s)"}, "range": [first - zero, last - zero]},
            yaxis={"title": {"text": "Step (ms)"}, "rangemode": "tozero"},
        )
        self._show(figure)
