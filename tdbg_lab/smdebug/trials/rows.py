"""Rows of statistics of one run, kept by tensor: what reductions are made of."""

from __future__ import annotations

from math import inf, isnan, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdbg_lab.records import Mode
    from tdbg_lab.run import Run

__all__ = ["SCALAR_DTYPES", "RowReader", "in_dtype", "reduced"]

SCALAR_DTYPES = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": np.float32,
}
"""Types whose numbers a row holds exactly, and what they are read as."""
_COLUMNS = (
    "count",
    "nan_count",
    "pos_inf_count",
    "neg_inf_count",
    "zero_count",
    "min",
    "max",
    "mean",
    "std",
    "l1",
    "l2",
    "value",
)


class RowReader:
    """Reads the whole history of a tensor at once, and keeps it until the run changes."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._frames: dict[tuple[str, Mode, int | None], dict[int, dict[str, float]]] = {}

    def forget(self) -> None:
        """The run has changed."""
        self._frames.clear()

    def _rows(self, name: str, mode: Mode, rank: int | None) -> dict[int, dict[str, float]]:
        place = name, mode, rank
        found = self._frames.get(place)
        if found is None:
            try:
                frame = self._run.stats(name, _COLUMNS, mode=mode, rank=rank)
            except NotFoundError:
                return {}
            columns = [frame[column].to_numpy().tolist() for column in _COLUMNS]
            rows = [dict(zip(_COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]
            found = self._frames[place] = dict(zip(frame["step"].tolist(), rows, strict=True))
        return found

    def steps(self, name: str, mode: Mode, rank: int | None = None) -> list[int]:
        """Steps of the run, of one mode, that have a row."""
        return list(self._rows(name, mode, rank))

    def values(self, name: str, mode: Mode, rank: int) -> dict[int, float]:
        """A scalar by step of the run."""
        return {step: row["value"] for step, row in self._rows(name, mode, rank).items()}

    def row(self, name: str, place: tuple[str, int, Mode, int], rank: int) -> Mapping[str, float] | None:
        """The row of a tensor at a place of a `RunRecord`; None when there is none."""
        return self._rows(name, place[2], rank).get(place[3])


def reduced(row: Mapping[str, float], reduction: str, *, absolute: bool, ddof: int) -> float | None:
    """A reduction of all elements, NaN and infinities included; None when it does not follow exactly.

    Parameters
    ----------
    ddof
        Degrees of freedom taken off in ``std`` and ``variance``.
    """
    if not row["count"]:
        return None
    if row["nan_count"]:
        return nan if reduction != "prod" else None
    if absolute:
        return _absolute(row, reduction)
    if reduction in {"std", "variance"}:
        return _spread(row, reduction, ddof)
    if reduction in {"l1", "l2"}:
        return inf if row["pos_inf_count"] or row["neg_inf_count"] else row[reduction]
    if reduction in {"min", "max"}:
        return _extreme(row, reduction)
    if reduction in {"mean", "sum"}:
        return _mean(row) * (row["count"] if reduction == "sum" else 1)
    return None


def _mean(row: Mapping[str, float]) -> float:
    if row["pos_inf_count"] and row["neg_inf_count"]:
        return nan
    if row["pos_inf_count"] or row["neg_inf_count"]:
        return inf if row["pos_inf_count"] else -inf
    return row["mean"]


def _extreme(row: Mapping[str, float], which: str) -> float:
    edge = inf if which == "max" else -inf
    if row["pos_inf_count" if which == "max" else "neg_inf_count"]:
        return edge
    return -edge if isnan(row[which]) else row[which]  # NaN: no element is finite


def _spread(row: Mapping[str, float], which: str, ddof: int) -> float:
    n = row["count"]
    if row["pos_inf_count"] or row["neg_inf_count"] or n <= ddof:
        return nan
    variance = row["std"] ** 2 * (n / (n - ddof))
    return sqrt(variance) if which == "std" else variance


def _absolute(row: Mapping[str, float], reduction: str) -> float | None:
    infinite = row["pos_inf_count"] or row["neg_inf_count"]
    if reduction in {"max", "mean", "sum", "l1", "l2"} and infinite:
        return inf
    if reduction == "max":
        return max(abs(row["min"]), abs(row["max"]))
    if reduction == "mean":
        return row["l1"] / row["count"]
    if reduction in {"sum", "l1"}:
        return row["l1"]
    if reduction == "l2":
        return row["l2"]
    if reduction == "min" and row["zero_count"]:
        return 0.0
    if reduction == "min" and not infinite and (row["min"] > 0 or row["max"] < 0):
        return min(abs(row["min"]), abs(row["max"]))
    return None


def in_dtype(value: float, dtype: str) -> Any:
    """The number as an array without dimensions, in the type of its tensor."""
    with np.errstate(over="ignore"):
        return np.asarray(value, SCALAR_DTYPES.get(dtype, np.float64))
