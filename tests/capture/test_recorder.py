"""Rows of a step leave in the order in which they were read."""

from __future__ import annotations

import numpy as np
import pytest

from tdbg_lab.capture.recorder import Recorder
from tdbg_lab.records import Kind, TensorKey
from tdbg_lab.stats import summarize
from tdbg_lab.stats.engine import engine
from tdbg_lab.stats.pointers import describe


class Kept:
    """A writer that keeps what it is given."""

    bytes_written = 0

    def __init__(self):
        self.rows = []

    def append(self, rows):
        self.rows.append(rows)

    def close(self):
        pass


@pytest.fixture(autouse=True)
def kernels():
    pytest.importorskip("numba")
    assert engine().usable()


def measure(recorder, name, values):
    engine().measure_into(recorder.measured, [describe(values, None)[0]])
    recorder.add_measured([TensorKey(name, Kind.ACTIVATION)])


def add_block(recorder, names, arrays):
    recorder.add([TensorKey(name, Kind.ACTIVATION) for name in names], summarize(arrays))


@pytest.mark.parametrize("broken_off", [False, True])
def test_blocks_keep_their_place_among_measured_rows(broken_off):
    recorder, arrays = Recorder(writer := Kept()), [np.full(i + 1, float(i)) for i in range(6)]
    add_block(recorder, ["first", "second"], arrays[:2])
    measure(recorder, "third", arrays[2])
    recorder.add_scalar(TensorKey("number", Kind.SCALAR), 7.0)
    add_block(recorder, ["fourth"], arrays[3:4])
    measure(recorder, "fifth", arrays[4])
    add_block(recorder, ["sixth"], arrays[5:])
    if broken_off:  # a row without a key
        engine().measure_into(recorder.measured, [describe(arrays[0], None)[0]])
    recorder.flush_rows()
    (rows,) = writer.rows
    found = {key.name: mean for key, mean in zip(rows.keys, rows.block.mean.tolist(), strict=True)}
    wanted = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "sixth": 5, "number": 7}
    if broken_off:
        wanted = {name: mean for name, mean in wanted.items() if name not in {"third", "fifth"}}
    assert found == wanted
    assert [name for name in found if name != "number"] == [name for name in wanted if name != "number"]
    assert rows.block.count.tolist() == [1 if mean == 7 else mean + 1 for mean in found.values()]
