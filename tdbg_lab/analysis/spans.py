"""Spans of time, made few enough to draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Bars", "merge_narrow"]


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
    """One bar for each wide span, and one for the narrow spans that begin in the same pixel.

    At most two bars for each pixel of the picture, and no span is lost: counts and durations add up.

    Parameters
    ----------
    start, length, step
        Spans, shape ``(N,)``, in any order; times in one unit.
    pixel
        Width of a pixel in that unit; a span shorter than it is narrow.
    """
    if not len(start):
        none, zero = np.empty(0), np.empty(0, dtype=np.int64)
        return Bars(none, none, none, zero, zero, zero)
    order = np.argsort(start, kind="stable")
    start, length, step = start[order], length[order], step[order]
    narrow = length < pixel if pixel > 0 else np.zeros(len(start), dtype=bool)
    cell = np.where(narrow, np.floor((start - start[0]) / pixel) if pixel > 0 else 0, -1).astype(np.int64)
    wide_key = -1 - np.arange(len(start))  # wide spans stay alone
    _, group = np.unique(np.where(narrow, cell, wide_key), return_inverse=True)
    n = int(group.max()) + 1
    first, last = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(first, group, start)
    np.maximum.at(last, group, start + length)
    step_first, step_last = np.full(n, np.iinfo(np.int64).max), np.full(n, -1)
    np.minimum.at(step_first, group, step)
    np.maximum.at(step_last, group, step)
    place = np.argsort(first, kind="stable")
    return Bars(
        start=first[place],
        length=(last - first)[place],
        busy=np.bincount(group, weights=length)[place].astype(np.float64),
        spans=np.bincount(group)[place].astype(np.int64),
        step_first=step_first[place],
        step_last=step_last[place],
    )
