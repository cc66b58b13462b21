"""Load of the machine as rules see it: one series for each metric and device, in bounded memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BUSIEST", "NO_SAMPLES", "SampleLog", "Samples"]

BUSIEST = "busiest_core"
"""Metric made here of all ``cpu`` samples of one moment: load of the busiest core, percent."""
_RECENT = 4096
_WHOLE = 2048
_MAX_SERIES = 1024
_MAX_LAYOUTS = 16
_CORE = re.compile(r"cpu\d+")


class Samples(NamedTuple):
    """A metric of one device over time."""

    time_ns: NDArray[np.int64]
    """Ascending, shape ``(S,)``."""
    values: NDArray[np.float64]
    """Shape ``(S,)``, in the unit of the metric."""

    def last(self, n: int) -> Samples:
        """The last `n` samples."""
        return Samples(self.time_ns[-n:], self.values[-n:])


NO_SAMPLES = Samples(np.empty(0, np.int64), np.empty(0))


class SampleLog:
    """Samples of all machines of a run. Single cores are kept as the busiest one of each moment.

    A machine is known by the rank whose process sampled it.
    """

    def __init__(self) -> None:
        self._series: dict[tuple[str, int, str], _Series] = {}
        self._layouts: list[_Layout] = []
        self._cores: dict[int, int] = {}

    def cores(self, rank: int = 0) -> int | None:
        """Cores of a machine, or None when they are not known."""
        return self._cores.get(rank)

    def devices(self, metric: str) -> list[tuple[int, str]]:
        """Machine (by rank) and device of each series of a metric."""
        return sorted((rank, device) for name, rank, device in self._series if name == metric)

    def recent(self, metric: str, device: str, rank: int = 0) -> Samples:
        """At least the last 4,096 samples, each as it was taken; empty when there are none."""
        series = self._series.get((metric, rank, device))
        return NO_SAMPLES if series is None else series.recent()

    def whole(self, metric: str, device: str, rank: int = 0) -> Samples:
        """All of the run in up to 2,048 samples at even distances."""
        series = self._series.get((metric, rank, device))
        return NO_SAMPLES if series is None else series.whole()

    def put(
        self, rank: int, time_ns: int, metrics: list[str], devices: list[str], values: NDArray[np.float64]
    ) -> None:
        """Add the readings of one moment."""
        layout = self._layout(rank, metrics, devices)
        for row, series in layout.series:
            if np.isfinite(value := values[row]):
                series.put(time_ns, float(value))
        if len(layout.cores):
            loads = values[layout.cores]
            self._cores[rank] = len(loads)
            self._of(BUSIEST, rank, "cpu").put(time_ns, float(loads.max()))

    def _layout(self, rank: int, metrics: list[str], devices: list[str]) -> _Layout:
        """Where the readings of one moment go: the same at nearly every moment."""
        for known in self._layouts:
            if known.rank == rank and known.metrics == metrics and known.devices == devices:
                return known
        pairs = list(enumerate(zip(metrics, devices, strict=True)))
        cores = [row for row, (metric, device) in pairs if metric == "cpu" and _CORE.fullmatch(device)]
        others = [pair for pair in pairs if pair[0] not in set(cores)]
        room = _MAX_SERIES - len(self._series)
        fitting = [
            (row, m, d) for row, (m, d) in others if (m, rank, d) in self._series or (room := room - 1) >= 0
        ]
        layout = _Layout(
            rank,
            metrics,
            devices,
            np.array(cores, np.int64),
            [(row, self._of(m, rank, d)) for row, m, d in fitting],
        )
        self._layouts = [layout, *self._layouts[: _MAX_LAYOUTS - 1]]
        return layout

    def _of(self, metric: str, rank: int, device: str) -> _Series:
        return self._series.setdefault((metric, rank, device), _Series())


class _Layout(NamedTuple):
    rank: int
    metrics: list[str]
    devices: list[str]
    cores: NDArray[np.int64]
    """Rows of single cores."""
    series: list[tuple[int, _Series]]


class _Series:
    """The last samples one by one, and the whole time ever more coarsely."""

    def __init__(self) -> None:
        self._time = np.empty(2 * _RECENT, np.int64)
        self._values = np.empty(2 * _RECENT)
        self._size = 0
        self._coarse: list[tuple[int, float]] = []
        self._stride = 1
        self._seen = 0

    def put(self, time_ns: int, value: float) -> None:
        if self._size == len(self._time):
            self._time[:_RECENT] = self._time[-_RECENT:]
            self._values[:_RECENT] = self._values[-_RECENT:]
            self._size = _RECENT
        self._time[self._size], self._values[self._size] = time_ns, value
        self._size += 1
        if self._seen % self._stride == 0:
            self._coarse.append((time_ns, value))
            if len(self._coarse) > _WHOLE:
                del self._coarse[1::2]
                self._stride *= 2
        self._seen += 1

    def recent(self) -> Samples:
        return Samples(self._time[: self._size], self._values[: self._size])

    def whole(self) -> Samples:
        times, values = zip(*self._coarse, strict=True) if self._coarse else ((), ())
        return Samples(np.array(times, np.int64), np.array(values, np.float64))
