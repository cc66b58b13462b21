import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tdbg_lab.stats import CENTER, LOWER, N_BINS, RELATIVE_ERROR, UPPER, bin_of, ordered

USED = np.r_[0:1020, 1024:2044]
non_zero = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != 0)


@given(non_zero)
def test_bin_of_any_finite_value_holds_its_float32(value):
    b = int(bin_of(value))
    rounded = np.clip(np.float64(value), -np.finfo(np.float32).max, np.finfo(np.float32).max)
    with np.errstate(under="ignore"):
        rounded = np.float64(np.float32(rounded))
    assert b in USED
    assert LOWER[b] <= rounded <= UPPER[b]
    assert (b >= 1024) == (value < 0)


@given(st.floats(2.0**-126, 3.4e38))
def test_center_of_a_normal_value_is_within_the_stated_error(value):
    for signed in (value, -value):
        assert abs(CENTER[bin_of(signed)] - signed) <= RELATIVE_ERROR * abs(signed) * (1 + 1e-6)


def test_bin_of_values_that_float32_cannot_hold():
    assert bin_of([1e-300, -1e-300, 1e300, -1e300]).tolist() == [0, 1024, 1019, 2043]


def test_bins_tile_the_line_without_gaps():
    order = ordered(USED)
    assert (np.diff(CENTER[USED[order]]) > 0).all()
    np.testing.assert_array_equal(UPPER[:1019], LOWER[1:1020])
    np.testing.assert_array_equal(LOWER[1024:2043], UPPER[1025:2044])
    assert (LOWER[USED] < UPPER[USED]).all()
    assert UPPER[1019] == 2.0**128
    assert LOWER[0] == 0.0


def test_bin_of_keeps_shape_and_type():
    assert bin_of(np.ones((2, 3))).shape == (2, 3)
    assert bin_of(1.0).dtype == np.uint16
    assert bin_of(1.0).shape == ()


def test_tables_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        CENTER[0] = 1.0
    assert len(LOWER) == len(UPPER) == len(CENTER) == N_BINS
