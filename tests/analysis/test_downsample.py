from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tdbg_lab.analysis.downsample import evenly, min_max, spaced

VALUES = npst.arrays(np.float64, st.integers(1, 400), elements=st.floats(width=64))


@settings(max_examples=60, deadline=None)
@given(VALUES, st.integers(4, 60))
def test_min_max_keeps_ends_and_everything_not_finite(values, n_out):
    kept = min_max(values, n_out)
    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0
    assert kept[-1] == len(values) - 1
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad) <= n_out:
        assert set(bad) <= set(kept)
    assert np.isfinite(values[kept]).sum() <= n_out
    np.testing.assert_array_equal(kept, min_max(values, n_out))


@settings(max_examples=60, deadline=None)
@given(npst.arrays(np.float64, st.integers(50, 400), elements=st.floats(-1e6, 1e6)))
def test_min_max_keeps_the_extremes(values):
    kept = min_max(values, 20)
    assert values[kept].min() == values.min()
    assert values[kept].max() == values.max()


def test_min_max_keeps_both_ends_of_each_run_when_much_is_not_finite():
    values = np.zeros(1000)
    values[100:500] = np.nan
    values[500:800] = np.inf
    kept = min_max(values, 10)
    assert {100, 499, 500, 799} <= set(kept.tolist())
    assert len(kept) < 20


def test_min_max_agrees_with_tsdownsample_on_extremes():
    tsdownsample = pytest.importorskip("tsdownsample")
    rng = np.random.default_rng(0)
    values = rng.normal(0, 1, 10_000).cumsum()
    theirs = tsdownsample.MinMaxDownsampler().downsample(values, n_out=100)
    ours = min_max(values, 102)
    assert values[ours].max() == values[theirs].max()
    assert values[ours].min() == values[theirs].min()
    assert len(ours) <= 102


def test_min_max_refuses_too_few_points():
    with pytest.raises(ValueError, match="at least 4"):
        min_max(np.zeros(10), 3)


@pytest.mark.parametrize(
    ("n", "n_out", "expected"), [(5, 10, [0, 1, 2, 3, 4]), (10, 1, [9]), (10, 2, [0, 9])]
)
def test_evenly_keeps_both_ends(n, n_out, expected):
    assert evenly(n, n_out).tolist() == expected


@pytest.mark.parametrize(
    ("n", "n_out", "expected"),
    [(0, 5, []), (5, 10, [0, 1, 2, 3, 4]), (10, 1, [9]), (10, 4, [0, 3, 6, 9]), (11, 4, [1, 4, 7, 10])],
)
def test_spaced_indices_are_equally_far_apart_and_end_with_the_last(n, n_out, expected):
    assert spaced(n, n_out).tolist() == expected
