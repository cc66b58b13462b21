"""The statistics a view can show: what they are called, where they come from, how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["CHOICES", "CHOICE_LABELS", "COLUMNS", "Column"]


@dataclass(frozen=True, slots=True)
class Column:
    """One statistic of a tensor at a step."""

    name: str
    """On the wire."""
    label: str
    """As axis title."""
    source: str
    """Column of `Run.stats` and `Run.overview`."""
    sign: Literal["positive", "signed", "share"]
    """Which colours and which axis suit it."""


COLUMNS = {
    column.name: column
    for column in (
        Column("l2", "L2 norm", "l2", "positive"),
        Column("mean", "Mean", "mean", "signed"),
        Column("std", "Standard deviation", "std", "positive"),
        Column("min", "Minimum", "min", "signed"),
        Column("max", "Maximum", "max", "signed"),
        Column("l1", "L1 norm", "l1", "positive"),
        Column("mean_abs", "Mean of absolute values", "abs_mean", "positive"),
        Column("rms", "Root mean square", "rms", "positive"),
        Column("median", "Median", "q50", "signed"),
        Column("zero_share", "Share of zeros", "zero_frac", "share"),
        Column("nan_share", "Share of NaN", "nan_frac", "share"),
        Column("inf_share", "Share of infinities", "inf_frac", "share"),
    )
}
CHOICES = tuple(COLUMNS)
CHOICE_LABELS = tuple(column.label for column in COLUMNS.values())
