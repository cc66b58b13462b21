"""Small rows for the tests of the store."""

from __future__ import annotations

import time

import numpy as np

from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.testing import block_of

KEYS = (
    TensorKey("a.weight", Kind.WEIGHT, "a", "float32", (2, 3), ("default",)),
    TensorKey("activation/b", Kind.ACTIVATION, "b", "float32", (4, 3)),
    TensorKey("loss", Kind.LOSS),
)


def arrays(step: int) -> list[np.ndarray]:
    random = np.random.default_rng(step)
    output = np.maximum(random.normal(size=(4, 3)), 0)
    return [random.normal(step, 1, (2, 3)), output, np.array(float(step))]


def rows(step: int, *, mode: Mode = Mode.TRAIN, micro: int = 0, seed: int | None = None) -> StatsRows:
    block = block_of(arrays(step if seed is None else seed), [None, 1, None])
    return StatsRows(step, mode, micro, time.time_ns(), KEYS, block)
