"""The stats table of a whole run: rows of all ranks and segments, merged, with derived columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import StatsBlock
from tdbg_lab.stats.block import merge, quantile
from tdbg_lab.store.parts import LIST_DTYPES, LISTS, REASON, Part, Query, join
from tdbg_lab.store.schema import COUNTS, FLOATS, SCALARS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

_QUANTILE = re.compile(r"q(\d{1,2}|100)(?:_(\d{1,3}))?")
_DERIVED: dict[str, tuple[str, ...]] = {
    "value": ("mean", "nan_count", "pos_inf_count", "neg_inf_count"),
    "zero_frac": ("count", "zero_count"),
    "nan_frac": ("count", "nan_count"),
    "inf_count": ("pos_inf_count", "neg_inf_count"),
    "inf_frac": ("count", "pos_inf_count", "neg_inf_count"),
    "finite_count": ("count", "nan_count", "pos_inf_count", "neg_inf_count"),
    "rms": ("count", "nan_count", "pos_inf_count", "neg_inf_count", "l2"),
    "abs_mean": ("count", "nan_count", "pos_inf_count", "neg_inf_count", "l1"),
}
COLUMNS = (*SCALARS, "time_ns", *_DERIVED)
"""Names a reader may ask for, besides quantiles ``q01`` ... ``q99``, ``q99_9``."""


def quantile_of(column: str) -> float | None:
    """0.01 for ``q01``, 0.999 for ``q99_9``, None for what is no quantile."""
    match = _QUANTILE.fullmatch(column)
    return float(f"{match[1]}.{match[2] or 0}") / 100 if match else None


def needed(columns: Iterable[str]) -> tuple[str, ...]:
    """Stored columns that `columns` are made of.

    Raises
    ------
    ConfigError
        If there is no such column.
    """
    found: dict[str, None] = {}
    for column in columns:
        if quantile_of(column) is not None:
            stored: tuple[str, ...] = (*SCALARS, "hist_bins", "hist_counts")
        elif column in SCALARS or column == "time_ns":
            stored = (column,)
        elif column in _DERIVED:
            stored = _DERIVED[column]
        else:
            raise ConfigError(
                f"There is no column {column[:80]!r}. Choose from {', '.join(COLUMNS)}, q01 to q99."
            )
        found.update(dict.fromkeys(stored))
    return tuple(found)


def derive(part: Part, column: str) -> NDArray[Any]:
    """A column from those `needed` says, one value a row."""
    c = part.columns
    q = quantile_of(column)
    if q is not None:
        return np.asarray(quantile(block_of(part), [q])[:, 0])
    if column in c:
        return c[column]
    if column == "value":
        return scalar_values(part)
    if column == "inf_count":
        return np.asarray(c["pos_inf_count"] + c["neg_inf_count"])
    with np.errstate(invalid="ignore", divide="ignore"):
        if column in {"zero_frac", "nan_frac"}:
            return np.asarray(c[column.replace("frac", "count")] / c["count"])
        if column == "inf_frac":
            return np.asarray((c["pos_inf_count"] + c["neg_inf_count"]) / c["count"])
        finite = c["count"] - c["nan_count"] - c["pos_inf_count"] - c["neg_inf_count"]
        if column == "rms":
            return np.asarray(c["l2"] / np.sqrt(finite))
        if column == "abs_mean":
            return np.asarray(c["l1"] / finite)
    return np.asarray(finite)


def scalar_values(part: Part) -> NDArray[np.float64]:
    """Value of rows with one element, NaN and infinities kept."""
    values = part.columns["mean"].astype(np.float64, copy=True)
    values[part.columns["pos_inf_count"] > 0] = np.inf
    values[part.columns["neg_inf_count"] > 0] = -np.inf
    values[part.columns["nan_count"] > 0] = np.nan
    return values


def ordered(part: Part) -> Part:
    """Rows by tensor, then step, as they come."""
    if len(part.step) < 2 or _ascending(part):
        return part
    # Segments come in the order of their steps: a stable sort by tensor mostly does.
    by_tensor = part.take(np.argsort(part.tensor, kind="stable"))
    if _ascending(by_tensor):
        return by_tensor
    return part.take(np.lexsort((part.step, part.tensor)))


def _ascending(part: Part) -> bool:
    tensor, step = part.tensor, part.step
    ahead = (tensor[1:] > tensor[:-1]) | ((tensor[1:] == tensor[:-1]) & (step[1:] >= step[:-1]))
    return bool(ahead.all())


def repeated(part: Part) -> bool:
    """Whether an ordered part has several rows of one tensor and step."""
    same = (part.tensor[1:] == part.tensor[:-1]) & (part.step[1:] == part.step[:-1])
    return bool(same.any())


def merged(part: Part) -> Part:
    """An ordered part with one row for each tensor and step; needs all of `SCALARS`."""
    if not repeated(part):
        return part
    new = np.r_[True, (part.tensor[1:] != part.tensor[:-1]) | (part.step[1:] != part.step[:-1])]
    first = np.flatnonzero(new)
    groups = np.cumsum(new) - 1
    block = merge(block_of(part), groups, len(first))
    columns: dict[str, NDArray[Any]] = {name: getattr(block, name) for name in SCALARS}
    if "time_ns" in part.columns:
        columns["time_ns"] = np.maximum.reduceat(part.columns["time_ns"], first)
    if REASON in part.columns:
        columns[REASON] = np.array([block.reason(i) for i in range(len(block))] + [None], object)[:-1]
    hist, channel = np.diff(block.hist_offsets), np.diff(block.channel_offsets)
    lists = {
        name: (hist if name.startswith("hist") else channel, getattr(block, name)) for name in part.lists
    }
    return Part(part.tensor[first], part.step[first], columns, lists)


def read_merged(parts: Callable[[Query], Sequence[Part]], query: Query) -> Part:
    """What `parts` gives for a query, by tensor and step, one row for each."""
    part = ordered(join(parts(query), query))
    if not repeated(part):
        return part
    columns = dict.fromkeys((*query.columns, *SCALARS))
    for pair in (LISTS[:2], LISTS[2:]):
        if any(name in columns for name in pair):
            columns.update(dict.fromkeys(pair))
    full = Query(query.mode, query.tensors, tuple(columns), query.first, query.last)
    return merged(ordered(join(parts(full), full)))


def block_of(part: Part) -> StatsBlock:
    """The rows as a `StatsBlock`; lists that were not read are empty."""
    n = len(part.step)
    none = np.zeros(n, np.int64)
    lists = {name: part.lists.get(name, (none, np.empty(0, LIST_DTYPES[name]))) for name in LISTS}
    columns: dict[str, Any] = {name: part.columns[name].astype(np.int64, copy=False) for name in COUNTS}
    columns.update({name: part.columns[name].astype(np.float64, copy=False) for name in FLOATS})
    columns.update({name: values for name, (_, values) in lists.items()})
    columns["hist_counts"] = columns["hist_counts"].astype(np.int64)
    reasons = part.columns.get(REASON, ())
    if any(reason is not None for reason in reasons):
        columns["reasons"] = tuple(reasons)
    return StatsBlock(
        **columns,
        hist_offsets=np.r_[0, np.cumsum(lists["hist_bins"][0])].astype(np.int64),
        channel_offsets=np.r_[0, np.cumsum(lists["channel_mean"][0])].astype(np.int64),
    )
