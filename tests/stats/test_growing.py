"""Rows that are added call by call, and samples of tensors."""

import numpy as np
import pytest

from tdbg_lab.stats import concat, scalar_block, take
from tdbg_lab.stats.engine import engine
from tdbg_lab.stats.growing import GrowingBlock
from tdbg_lab.stats.pointers import describe
from tdbg_lab.stats.samples import Samples


@pytest.fixture(autouse=True)
def kernels():
    pytest.importorskip("numba")
    assert engine().usable()


def _equal(one, other):
    for name in one.__slots__:
        left, right = getattr(one, name), getattr(other, name)
        assert np.array_equal(left, right, equal_nan=name != "reasons"), name


def _arrays():
    rng = np.random.default_rng(0)
    wild = rng.normal(size=5000).astype(np.float32)
    wild[::7], wild[3], wild[5] = 0, np.nan, -np.inf
    extreme = np.array([1e200, -1e-200, 3.0])
    return [rng.normal(size=(64, 32)).astype(np.float32), wild, extreme, np.zeros(0, np.float32)]


def test_rows_added_one_by_one_are_those_of_one_call():
    arrays, rows = _arrays() * 40, GrowingBlock()
    axes = [1, None, None, None] * 40
    memories = [describe(array, axis)[0] for array, axis in zip(arrays, axes, strict=True)]
    for memory in memories:
        engine().measure_into(rows, [memory], threads=1)
    assert len(rows) == len(arrays)
    _equal(rows.block(), engine().measure(memories, threads=1))


def test_numbers_are_rows_as_scalar_block_makes_them():
    tiny, huge = 5e-324, 1.7e308
    values = [0.0, -0.0, 1.5, -2.25, np.nan, np.inf, -np.inf, tiny, -tiny, huge, -huge, 1e-40, 3.5e38]
    rows = GrowingBlock()
    engine().add_numbers(rows, values)
    _equal(rows.block(), scalar_block(values))
    engine().add_numbers(rows, [7.0])
    _equal(rows.block(), concat([scalar_block(values), scalar_block([7.0])]))


def test_repeated_row_is_the_same_without_channels():
    values, rows = _arrays()[0], GrowingBlock()
    engine().measure_into(rows, [describe(values, 1)[0]])
    rows.repeat(0)
    engine().add_numbers(rows, [1.0])
    block = rows.block()
    assert np.diff(block.channel_offsets).tolist() == [32, 0, 0]
    plain = engine().measure([describe(values, None)[0]])
    _equal(take(block, [1]), plain)


def test_cleared_rows_leave_nothing_behind():
    rows = GrowingBlock()
    engine().add_numbers(rows, [1.0, 2.0])
    rows.clear()
    assert len(rows) == 0
    engine().add_numbers(rows, [3.0])
    _equal(rows.block(), scalar_block([3.0]))
    assert rows.generation == 1


def test_a_block_that_was_taken_does_not_change():
    rows = GrowingBlock()
    engine().add_numbers(rows, [1.0])
    taken = rows.block()
    rows.clear()
    engine().add_numbers(rows, [2.0])
    assert taken.mean.tolist() == [1.0]


def test_samples_tell_how_far_tensors_have_moved():
    rng = np.random.default_rng(1)
    whole, parts = rng.normal(size=300).astype(np.float32), rng.normal(size=6400).astype(np.float32)
    still, none = np.ones(5, np.float32), np.zeros(4, np.float32)
    tensors = [whole, parts, still, none]
    samples = Samples(
        [one.ctypes.data for one in tensors], [(1, 300, 0), (50, 64, 128), (1, 5, 0), (1, 4, 0)]
    )
    before = [one.copy() for one in tensors]
    whole *= np.float32(1.01)
    parts += np.float32(0.5)
    none += np.float32(1)
    elsewhere = whole.copy()
    found = samples.ratios([one.ctypes.data for one in (elsewhere, parts, still, none)])
    looked_at = np.arange(6400).reshape(50, 128)[:, :64].ravel()
    old = before[1][looked_at].astype(float)
    assert found[0] == pytest.approx(0.01, rel=1e-4)
    assert found[1] == pytest.approx(0.5 * np.sqrt(len(old)) / np.linalg.norm(old), rel=1e-6)
    assert found[2] == 0
    assert found[3] == np.inf
