"""How long steps and their phases took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.smdebug.profiler.analysis.notebook_utils.chart import NotebookChart, histogram, tiles
from tdbg_lab.smdebug.profiler.analysis.notebook_utils.selection import Series, matching, phase_series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.smdebug.profiler.algorithm_metrics_reader import LocalAlgorithmMetricsReader

__all__ = ["StepHistogram"]

_BINS = 50
_SELECTED = ("Step:ModeKeys", "Forward-node", r"Backward\(post-forward\)-node")


class StepHistogram(NotebookChart):
    """A histogram of the durations of each phase; `plot` draws them.

    Parameters
    ----------
    width
        Durations that count, the last ones of each phase.
    """

    def __init__(self, metrics_reader: LocalAlgorithmMetricsReader, width: int = 500) -> None:
        super().__init__()
        self.metrics_reader = metrics_reader
        self.width = width
        self.last_timestamp: float = metrics_reader.get_timestamp_of_latest_available_file()
        self.step_metrics: dict[str, Series] = {}
        self.select_metrics: Sequence[str] = _SELECTED
        self.show_workers = True
        self._start: float = 0

    def plot(
        self,
        starttime: float = 0,
        endtime: float | None = None,
        select_metrics: Sequence[str] = _SELECTED,
        show_workers: bool = True,
    ) -> None:
        """Draw the phases whose name fits, between two times, us since the epoch.

        Raises
        ------
        SMDebugValueError
            If a pattern is no regular expression.
        """
        self.select_metrics, self.show_workers, self._start = select_metrics, show_workers, starttime
        if endtime is None:
            endtime = self.metrics_reader.get_timestamp_of_latest_available_file() + 1
        self.update_data(endtime)

    def clear(self) -> None:
        """Forget what was read."""
        self.step_metrics = {}

    def update_data(self, current_timestamp: float) -> None:
        """Draw what there is up to a time, us since the epoch."""
        self.metrics_reader.refresh_event_file_list()
        self.last_timestamp = current_timestamp
        found = phase_series(
            self.metrics_reader, self._start, current_timestamp, show_workers=self.show_workers
        )
        # The patterns of the documentation name the worker ("Forward-node"), shown or not.
        places = {name if self.show_workers else f"{name}-nodeid": name for name in found}
        chosen = [places[place] for place in matching(self.select_metrics, places)]
        self.step_metrics = {name: found[name] for name in chosen}
        self.create_plot()

    def create_plot(self) -> None:
        """Draw what was read."""
        bars = {name: _bars(one.values[-self.width :]) for name, one in self.step_metrics.items()}
        self._show(tiles(bars, "Milliseconds"))


def _bars(seconds: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
    """Bins over all but the few that took far longer, which would leave no room for the others."""
    ms = seconds * 1e3
    low, high = float(ms.min()), float(np.median(ms) + 2 * ms.std())
    counts, edges = np.histogram(ms, _BINS, (low, high) if low < high else None)
    left_out = int((ms > edges[-1]).sum())
    hover = f"%{{x:.4~g}} ms: <b>%{{y}}</b> times<extra>{left_out} took longer</extra>"
    return histogram(counts, edges, hover)
