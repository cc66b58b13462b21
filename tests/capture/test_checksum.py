"""The checksum that tells whether two batches are the same."""

import numpy as np
import pytest

from tdbg_lab.capture.checksum import checksum, checksum_at

SHAPES = [(), (5,), (3000,), (256, 17), (64, 1, 28, 28), (2, 5000), (1, 4000), (3, 0), (7, 400, 3)]


def values(shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_is_the_same_wherever_the_values_lie(shape):
    array = values(shape)
    apart = np.repeat(array[..., None], 2, axis=-1)[..., 0]
    assert array.flags.c_contiguous
    assert checksum(apart) == checksum(array)
    assert checksum_at(array.ctypes.data, array.shape, array.itemsize) in {checksum(array), None}


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape and 0 not in shape], ids=str)
def test_tells_values_and_shapes_apart(shape):
    array = values(shape)
    first, last = array.copy(), array.copy()
    first.flat[0] += 1
    last[-1:] += 1
    found = [checksum(one) for one in (array, first, last, array[None], array.astype(np.float64))]
    assert len(set(found)) == len(found)
    assert checksum(array, 1) != found[0]


def test_is_made_of_about_two_thousand_values_at_most_wherever_they_are():
    changed = 0
    for row in range(256):
        array = values((256, 17))
        array[row] += 1
        changed += checksum(array) != checksum(values((256, 17)))
    assert 2048 // 17 - 4 <= changed <= 2048 // 17


def test_reads_the_memory_of_whole_rows_where_it_is():
    for shape in [(256, 17), (64, 1, 28, 28), (5,), ()]:
        array = values(shape)
        assert checksum_at(array.ctypes.data, array.shape, array.itemsize) == checksum(array)
