"""Hand-made runs with raw values."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.testing import block_of

if TYPE_CHECKING:
    from tests.rules.made import Made


def record(
    made: Made, step: int, tensors: dict[str, Any], *, mode: str = "train", kind: Kind = Kind.CUSTOM
) -> None:
    """Write statistics and raw values; names that end in ``/labels`` have raw values only."""
    arrays = {name: np.asarray(value) for name, value in tensors.items()}
    told = {name: array for name, array in arrays.items() if not name.endswith("/labels")}
    keys = tuple(TensorKey(name, kind, module=name, shape=array.shape) for name, array in told.items())
    block = block_of([np.asarray(array, np.float32) for array in told.values()], [None] * len(told))
    made.writers[0].write_raw(step, arrays, mode=Mode(mode))
    made.writers[0].append(StatsRows(step, Mode(mode), 0, time.time_ns(), keys, block))
