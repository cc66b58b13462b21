"""System metrics over time, and which phases of training ran meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.smdebug.exceptions import SMDebugValueError
from tdbg_lab.smdebug.profiler.analysis.notebook_utils.chart import NotebookChart, heading
from tdbg_lab.smdebug.profiler.analysis.notebook_utils.selection import (
    Series,
    chosen_metrics,
    metric_series,
    phase_series,
)
from tdbg_lab.views.labels import safe
from tdbg_lab.views.palette import pick
from tdbg_lab.views.style import empty, new_figure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from plotly import graph_objects as go

    from tdbg_lab.smdebug.profiler.algorithm_metrics_reader import LocalAlgorithmMetricsReader
    from tdbg_lab.smdebug.profiler.system_metrics import LocalSystemMetricsReader

__all__ = ["TimelineCharts"]

_ROW_PX = 110
_HEADING = 0.25
"""Part of a row that is left for its heading."""
_MOST_ROWS = 40


class TimelineCharts(NotebookChart):
    """A plot for each selected dimension, its events as lines; it shows itself as soon as it is made.

    Parameters
    ----------
    starttime, endtime
        Us since the epoch.
    x
        Readings in sight at first, the last ones.

    Raises
    ------
    SMDebugValueError
        If a pattern is no regular expression.
    """

    def __init__(
        self,
        system_metrics_reader: LocalSystemMetricsReader,
        framework_metrics_reader: LocalAlgorithmMetricsReader | None,
        starttime: float = 0,
        endtime: float | None = None,
        select_dimensions: Sequence[str] = (".*",),
        select_events: Sequence[str] = (".*",),
        x: int = 1000,
        show_workers: bool = True,
    ) -> None:
        super().__init__()
        self.system_metrics_reader = system_metrics_reader
        self.framework_metrics_reader = framework_metrics_reader
        self.select_dimensions = select_dimensions
        self.select_events = select_events
        self.width = x
        self.show_workers = show_workers
        self._start = starttime
        self.system_metrics: dict[tuple[str, str], Series] = {}
        if endtime is None:
            endtime = system_metrics_reader.get_timestamp_of_latest_available_file() + 1
        self.update_data(endtime)

    def update_data(self, current_timestamp: float) -> None:
        """Draw what there is up to a time, us since the epoch."""
        self.system_metrics_reader.refresh_event_file_list()
        found = metric_series(
            self.system_metrics_reader, self._start, current_timestamp, show_workers=self.show_workers
        )
        self.system_metrics = chosen_metrics(found, self.select_dimensions, self.select_events)
        self.create_plot()

    def create_plot(self) -> None:
        """Draw the system metrics that were read."""
        dimensions = list(dict.fromkeys(dimension for dimension, _ in self.system_metrics))[:_MOST_ROWS]
        if not dimensions:
            self._show(empty("Nothing fits the selection.", "Choose other dimensions, or wait for data."))
            return
        zero = self._zero()
        figure = new_figure(self._lines(dimensions, zero))
        for at in range(len(dimensions)):
            bottom, top = (1 - (at + part) / len(dimensions) for part in (1.0, _HEADING))
            axis = {"domain": [max(bottom, 0.0), top], "anchor": "x", "rangemode": "tozero"}
            figure.update_layout({f"yaxis{at + 1 if at else ''}": axis})
        last = max(one.seconds[-1] for one in self.system_metrics.values())
        first = min(one.seconds[-self.width :][0] for one in self.system_metrics.values())
        figure.update_layout(
            height=120 + _ROW_PX * len(dimensions),
            annotations=[heading(name, at, x="x") for at, name in enumerate(dimensions, start=1)],
            xaxis={
                "title": {"text": "Time since start (s)"},
                "range": [first - zero, last - zero],
                "anchor": f"y{len(dimensions)}" if len(dimensions) > 1 else "y",
            },
        )
        self._show(figure)

    def find_time_annotations(self, indexes: Sequence[int]) -> dict[str, float]:
        """Seconds that each phase took in all within a range of readings, the longest first.

        Parameters
        ----------
        indexes
            Of readings of the CPU (of the first metric where there is none); the first and the last count.

        Raises
        ------
        SMDebugValueError
            If there is no such reading.
        """
        phases = self._phases(*self._range(indexes))
        sums = {name: float(one.values.sum()) for name, one in phases.items()}
        return dict(sorted(sums.items(), key=lambda one: -one[1]))

    def plot_detailed_profiler_data(self, indexes: Sequence[int]) -> go.Figure:
        """Show the phases that ran within a range of readings, and give the figure.

        Raises
        ------
        SMDebugValueError
            If there is no such reading.
        """
        begin, end = self._range(indexes)
        phases = self._phases(begin, end)
        if not phases:
            figure = empty("No phase was recorded in this range.", "Choose a longer one.")
        else:
            figure = new_figure(
                [_bars(name, one, begin, at) for at, (name, one) in enumerate(phases.items())]
            )
            figure.update_layout(
                height=140 + 28 * len(phases),
                barmode="overlay",
                showlegend=False,
                xaxis={"title": {"text": "Time in the range (s)"}, "range": [0.0, end - begin]},
                yaxis={"type": "category", "autorange": "reversed"},
            )
        detail = NotebookChart()
        detail._show(figure)  # noqa: SLF001 - a chart of its own beside this one
        return figure

    def _zero(self) -> float:
        return float(min(one.seconds[0] for one in self.system_metrics.values()))

    def _lines(self, dimensions: list[str], zero: float) -> list[dict[str, Any]]:
        events = list(dict.fromkeys(event for _, event in self.system_metrics))
        first = {event: dimension for dimension, event in reversed(self.system_metrics)}
        return [
            {
                "type": "scattergl",
                "mode": "lines",
                "name": safe(event),
                "legendgroup": safe(event),
                "showlegend": first[event] == dimension,
                "x": one.seconds - zero,
                "y": one.values,
                "yaxis": f"y{place + 1 if (place := dimensions.index(dimension)) else ''}",
                "line": {"width": 1.2, "color": pick(events.index(event))},
                "hovertemplate": f"%{{x:.1f}} s: <b>%{{y:.4~g}}</b> {safe(event)}<extra></extra>",
            }
            for (dimension, event), one in self.system_metrics.items()
            if dimension in dimensions
        ]

    def _range(self, indexes: Sequence[int]) -> tuple[float, float]:
        """First and last second since the epoch."""
        series = next(
            (one for (name, _), one in self.system_metrics.items() if name.startswith("CPUUtilization")),
            next(iter(self.system_metrics.values()), None),
        )
        readings = 0 if series is None else len(series.seconds)
        if series is None or not len(indexes) or min(indexes) < 0 or max(indexes) >= readings:
            raise SMDebugValueError(
                f"The range {list(indexes)[:10]} has no readings: expected indexes from 0 to {readings - 1}."
            )
        return float(series.seconds[min(indexes)]), float(series.seconds[max(indexes)])

    def _phases(self, begin: float, end: float) -> dict[str, Series]:
        if self.framework_metrics_reader is None:
            return {}
        self.framework_metrics_reader.refresh_event_file_list()
        return phase_series(
            self.framework_metrics_reader, begin * 1e6, end * 1e6, show_workers=self.show_workers
        )


def _bars(name: str, series: Series, begin: float, at: int) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "y": [safe(name)] * len(series.values),
        "base": series.seconds - begin,
        "x": series.values,
        "marker": {"color": pick(at)},
        "hovertemplate": "from %{base:.3f} s: <b>%{x:.4~g} s</b><extra>%{y}</extra>",
    }
