from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tdbg_lab.analysis.cumulative import quantile_lines, smooth_rebin
from tdbg_lab.analysis.value_axis import ValueAxis, rebin
from tdbg_lab.stats import empty_block
from tdbg_lab.stats.reference import summarize

ARRAYS = npst.arrays(np.float64, st.integers(1, 60), elements=st.floats(width=64))
SCALES = st.sampled_from(["signed_log", "linear"])


@settings(max_examples=60, deadline=None)
@given(st.lists(ARRAYS, min_size=1, max_size=4), SCALES, st.integers(5, 90))
@example([np.array([1.0 - 2**-53, 1.0])], "linear", 50)
@example([np.array([5e-324, 1e-323])], "linear", 50)
def test_rebin_sums_to_the_finite_count(arrays, scale, rows):
    block = summarize(arrays)
    axis = ValueAxis.fit(block, scale)
    edges = axis.edges(rows)
    assert (np.diff(edges) > 0).all()
    for table in (rebin(block, axis, edges), smooth_rebin(block, axis, edges)):
        assert (table >= -1e-9).all()
        np.testing.assert_allclose(table.sum(axis=1), block.finite_count, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(npst.arrays(np.float64, st.integers(1, 80), elements=st.floats(-1e30, 1e30)))
@example(np.array([5e-324]))
def test_axis_positions_come_back_as_values(values):
    axis = ValueAxis.fit(summarize([values]), "signed_log")
    back = axis.inverse(axis.forward(values))
    np.testing.assert_allclose(back, values, rtol=1e-6, atol=axis.unit * 1e-6)
    positions = axis.forward(np.array([values.min(), values.max()]))
    assert axis.low <= positions[0]
    assert positions[1] <= axis.high


def test_rebin_puts_values_where_they_are():
    rng = np.random.default_rng(0)
    values = rng.normal(0, 0.1, 20_000)
    block = summarize([values])
    axis = ValueAxis.fit(block, "linear")
    edges = np.linspace(-0.4, 0.4, 17)
    expected = np.histogram(np.clip(values, -0.4, 0.4), edges)[0]
    for table in (rebin(block, axis, edges), smooth_rebin(block, axis, edges)):
        assert np.abs(table[0] - expected).sum() / len(values) < 0.06


def test_rebin_of_a_constant_fills_one_row():
    block = summarize([np.full(10, 1.1)])
    axis = ValueAxis.fit(block, "linear")
    for table in (rebin(block, axis, axis.edges(40)), smooth_rebin(block, axis, axis.edges(40))):
        assert (table > 0).sum() == 1
        assert table.sum() == 10


def test_rebin_of_a_row_without_its_smallest_value_keeps_the_counts():
    block = replace(summarize([np.array([1.0, 2.0, 3.0])]), min=np.array([np.nan]))
    axis = ValueAxis.fit(summarize([np.array([0.5, 4.0])]), "linear")
    for table in (rebin(block, axis, axis.edges(40)), smooth_rebin(block, axis, axis.edges(40))):
        assert table.sum() == pytest.approx(3)


def test_axis_gives_zero_a_row_of_its_own():
    block = summarize([np.array([-3.0, 0.0, 0.0, 5.0, 0.01])])
    axis = ValueAxis.fit(block, "signed_log")
    edges = axis.edges(60)
    row = int(np.searchsorted(edges, 0.0)) - 1
    assert edges[row] == pytest.approx(-edges[row + 1])
    assert rebin(block, axis, edges)[0, row] == pytest.approx(2)


def test_axis_shows_values_that_vanish_by_many_orders():
    rng = np.random.default_rng(0)
    block = summarize([rng.normal(0, size, 500) for size in (1.0, 1e-4, 1e-9)])
    axis = ValueAxis.fit(block, "signed_log")
    assert axis.forward(np.array([1e-8]))[0] > 0.5
    values = axis.ticks()[1]
    assert len(values) <= 12
    assert 0.0 in values


def test_axis_of_nothing_is_usable():
    for block in (empty_block(0), empty_block(3), summarize([np.array([np.nan])])):
        axis = ValueAxis.fit(block, "signed_log")
        assert len(axis.edges(10)) > 5
        assert rebin(block, axis, axis.edges(10)).sum() == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(ARRAYS, min_size=1, max_size=3))
def test_quantile_lines_rise_and_stay_within_the_data(arrays):
    block = summarize(arrays)
    found = quantile_lines(block, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1])
    for row in range(len(block)):
        if block.finite_count[row] == 0:
            assert np.isnan(found[row]).all()
            continue
        assert (np.diff(found[row]) >= 0).all()
        assert found[row, 0] == block.min[row]
        assert found[row, -1] == block.max[row]


def test_quantile_lines_are_near_the_true_quantiles():
    values = np.random.default_rng(1).normal(0, 1, 50_000)
    found = quantile_lines(summarize([values]), [0.1, 0.5, 0.9])[0]
    np.testing.assert_allclose(found, np.quantile(values, [0.1, 0.5, 0.9]), atol=0.06)
