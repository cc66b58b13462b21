"""Spans of time, made few enough to draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Bars", "merge_narrow", "side_by_side"]


@dataclass(frozen=True, slots=True)
class Bars:
    """What is drawn: B bars, each one span or several narrow neighbours. All columns have shape ``(B,)``."""

    start: NDArray[np.float64]
    length: NDArray[np.float64]
    """From the first start to the last end, gaps included."""
    busy: NDArray[np.float64]
    """Sum of the durations."""
    spans: NDArray[np.int64]
    """How many spans the bar stands for."""
    step_first: NDArray[np.int64]
    step_last: NDArray[np.int64]


def merge_narrow(
    start: NDArray[np.float64], length: NDArray[np.float64], step: NDArray[np.int64], pixel: float
) -> Bars:
    """One bar for each wide span, and one for the narrow spans that begin in the same cell of time.

    A cell is a pixel, or wider where the narrow spans are rare: it holds about three, so that a steady rhythm
    shows as an even band whose strength is `Bars.busy` over `Bars.length`, not as a moiré. No span is lost:
    counts and durations add up. At most about two bars for each pixel of the picture.

    Parameters
    ----------
    start, length, step
        Spans, shape ``(N,)``, in any order; times in one unit.
    pixel
        Width of a pixel in that unit; a span shorter than two of them is narrow.
    """
    if not len(start):
        none, zero = np.empty(0), np.empty(0, dtype=np.int64)
        return Bars(none, none, none, zero, zero, zero)
    order = np.argsort(start, kind="stable")
    start, length, step = start[order], length[order], step[order]
    narrow = length < 2 * pixel
    cell = _cell(start[narrow], pixel)
    place = (
        np.floor((start - start[0]) / cell).astype(np.int64)
        if cell > 0
        else np.zeros(len(start), dtype=np.int64)
    )
    alone = -1 - np.arange(len(start))
    _, group = np.unique(np.where(narrow, place, alone), return_inverse=True)
    n = int(group.max()) + 1
    spans = np.bincount(group).astype(np.int64)
    first, last = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(first, group, start)
    np.maximum.at(last, group, start + length)
    step_first, step_last = np.full(n, np.iinfo(np.int64).max), np.full(n, -1)
    np.minimum.at(step_first, group, step)
    np.maximum.at(step_last, group, step)
    several = spans > 1  # these fill their cell
    begin = start[0] + np.floor((first - start[0]) / cell) * cell if cell > 0 else first
    first = np.where(several, begin, first)
    last = np.where(several, np.maximum(last, first + cell), last)
    order = np.argsort(first, kind="stable")
    return Bars(
        start=first[order],
        length=(last - first)[order],
        busy=np.bincount(group, weights=length)[order].astype(np.float64),
        spans=spans[order],
        step_first=step_first[order],
        step_last=step_last[order],
    )


def side_by_side(bars: Bars, least: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Cells that touch one another and show the bars; of bars that overlap, the one that began last is seen.

    Parameters
    ----------
    least
        Width that a bar is given when it is narrower, so that it can be seen, in the unit of the bars.

    Returns
    -------
    Edges of the C cells, shape ``(C + 1,)``, ascending, and which bar each of them shows, shape ``(C,)``; -1
    where there is none.
    """
    tick = least / 100  # ends that differ by less are one
    ends = np.column_stack((bars.start, bars.start + np.maximum(bars.length, least)))
    edges, place = np.unique(np.round(ends / tick).astype(np.int64), return_inverse=True)
    shown = np.full(max(len(edges) - 1, 0), -1, dtype=np.int64)
    for bar, (first, last) in enumerate(place.reshape(-1, 2).tolist()):  # by start
        shown[first:last] = bar
    return np.asarray(edges * tick, dtype=np.float64), shown


def _cell(start: NDArray[np.float64], pixel: float) -> float:
    """Width of a cell: a pixel, or room for three narrow spans, but never more than 12 pixels."""
    if len(start) < 2:
        return pixel
    return float(min(max(pixel, 3 * np.median(np.diff(start))), 12 * pixel))
