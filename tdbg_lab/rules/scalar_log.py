"""Scalars of a run over steps: written down step by step, sorted by name when somebody asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, Mode
from tdbg_lab.rules.memo import remembered
from tdbg_lab.rules.series import NO_SCALARS, Scalars, Series

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.layout import Layout

__all__ = ["ScalarLog"]

_KINDS = (Kind.LOSS, Kind.SCALAR, Kind.OPTIMIZER, Kind.CHECK)
_MAX_ENTRIES = 512


class _Entry(NamedTuple):
    step: int
    layout: Layout
    values: NDArray[np.float64]
    """Of the rows with scalars."""


class ScalarLog:
    """Losses, logged scalars and optimizer facts of one mode.

    Of an evaluation of several batches a value is their mean, but for the number of its samples, which is the
    sum. Most scalars of a large model (an update ratio per weight) are asked for seldom or never: a step is
    kept as one array, and goes into the series of a name when that is read, or many steps at a time.
    """

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._entries: list[_Entry] = []
        self._series: dict[str, Series] = {}
        self._taken: dict[str, int] = {}
        """Entries that are in the series of a name already."""

    def __contains__(self, name: str) -> bool:
        return name in self._series

    def put(self, frame: Frame) -> None:
        """Add the scalars of a frame, or replace those of its step."""
        index = _scalar_index(frame.layout)
        if not index:
            return
        if index.keys() - self._series.keys():
            self._series |= {name: Series() for name in index if name not in self._series}
        rows = frame.rows(*_KINDS)
        values = frame.scalar_values[rows]
        if self._mode is Mode.EVAL and len(added := _added_up(frame.layout)):
            values = values.copy()
            values[added] *= frame.block.count[rows[added]]
        self._entries.append(_Entry(frame.step, frame.layout, values))
        if len(self._entries) >= _MAX_ENTRIES:
            self._empty()

    def get(self, name: str, until: int) -> Scalars:
        """Points of a scalar up to step `until`; empty when there is none of that name."""
        series = self._series.get(name)
        if series is None:
            return NO_SCALARS
        if (taken := self._taken.get(name, 0)) < len(self._entries):
            for entry in self._entries[taken:]:
                if (row := _scalar_index(entry.layout).get(name)) is not None:
                    series.put(entry.step, float(entry.values[row]))
            self._taken[name] = len(self._entries)
        return series.until(until)

    def _empty(self) -> None:
        runs: dict[int, list[_Entry]] = {}
        seen: dict[str, int] = {}
        for entry in self._entries:
            runs.setdefault(id(entry.layout), []).append(entry)
        for run in runs.values():
            for name in _scalar_index(run[0].layout):
                seen[name] = seen.get(name, 0) + 1
        for run in runs.values():
            steps = np.array([entry.step for entry in run], np.int64)
            values = np.stack([entry.values for entry in run])
            for name, row in _scalar_index(run[0].layout).items():
                taken = self._taken.get(name, 0)
                if len(runs) == 1 or (seen[name] == 1 and not taken):
                    self._series[name].extend(steps[taken:], values[taken:, row])
                else:
                    self.get(name, -1)
        self._entries.clear()
        self._taken.clear()


@remembered
def _scalar_index(layout: Layout) -> dict[str, int]:
    """Place of each scalar among the scalars of a layout."""
    return {layout.keys[row].name: place for place, row in enumerate(layout.rows(_KINDS).tolist())}


@remembered
def _added_up(layout: Layout) -> NDArray[np.int64]:
    """Places among the scalars of a layout that are numbers of samples."""
    return np.array(
        [place for name, place in _scalar_index(layout).items() if name.endswith("/samples")], int
    )
