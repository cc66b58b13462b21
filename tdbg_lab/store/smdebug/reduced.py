"""Statistics where only reductions were saved: what they tell, and NaN for the rest."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.stats.block import empty_block

if TYPE_CHECKING:
    from tdbg_lab.records import StatsBlock
    from tdbg_lab.store.smdebug.index_file import IndexFile, Reduction
    from tdbg_lab.store.smdebug.store import SmdebugStore

__all__ = ["reduced_row"]

_COLUMNS: dict[str, Reduction] = {
    "min": ("min", False),
    "max": ("max", False),
    "mean": ("mean", False),
    "std": ("std", False),
    "l1": ("l1", False),
    "l2": ("l2", False),
}


def reduced_row(store: SmdebugStore, file: IndexFile, name: str) -> StatsBlock | None:
    """One row from the saved reductions of a tensor, without histogram; None when there are none.

    Norms are the same for absolute values, and where a column was not saved but follows from others
    (``std`` from the variance, ``l1`` from the absolute sum) it is filled in.

    Raises
    ------
    StoreError
        If the event file cannot be read.
    """
    places = file.layout.reductions.get(name)
    if not places:
        return None
    values = zip(places, store.peek(file, list(places.values())), strict=True)
    saved = {reduction: float(value.real.reshape(-1)[0]) for reduction, value in values if value.size == 1}
    found = {column: saved.get(reduction, math.nan) for column, reduction in _COLUMNS.items()}
    n = _elements(file, name, saved)
    _fill(found, saved, n)
    if math.isnan(found["l2"]) and ("l2", True) in saved:
        found["l2"] = saved["l2", True]
    block = empty_block(1)
    columns: dict[str, Any] = {column: np.array([value]) for column, value in found.items()}
    return replace(block, count=np.array([n], np.int64), **columns)


def _fill(found: dict[str, float], saved: dict[Reduction, float], n: int) -> None:
    if math.isnan(found["std"]) and saved.get(("variance", False), -1.0) >= 0:
        found["std"] = math.sqrt(saved["variance", False])
    if math.isnan(found["mean"]) and n and ("sum", False) in saved:
        found["mean"] = saved["sum", False] / n
    for reduction, factor in ((("l1", True), 1), (("sum", True), 1), (("mean", True), n)):
        if math.isnan(found["l1"]) and factor and reduction in saved:
            found["l1"] = saved[reduction] * factor


def _elements(file: IndexFile, name: str, saved: dict[Reduction, float]) -> int:
    """Elements of the tensor, from its shape or from two reductions; 0 when nothing tells."""
    if name in file.shapes:
        return math.prod(file.shapes[name][0])
    for whole, mean in (
        (("l1", False), ("mean", True)),
        (("sum", True), ("mean", True)),
        (("sum", False), ("mean", False)),
    ):
        total, share = saved.get(whole, 0.0), saved.get(mean, 0.0)
        ratio = total / share if share else 0.0
        if 0 < ratio < 2**40 and abs(ratio - round(ratio)) < 1e-3 * max(1.0, ratio / 1e3):
            return round(ratio)
    return 0
