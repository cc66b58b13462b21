from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tdbg_lab.stats import (
    RELATIVE_ERROR,
    bin_of,
    concat,
    dense,
    empty_block,
    merge,
    quantile,
    reference,
    scalar_block,
    take,
)

RNG = np.random.default_rng(11)
floats = npst.arrays(np.float32, st.integers(0, 60), elements=st.floats(width=32))


def _blocks(*sizes):
    return reference.summarize(
        [RNG.standard_normal((2, n)).astype(np.float32) for n in sizes], channel_axes=[0] * len(sizes)
    )


def test_empty_block_rows_say_nothing():
    block = empty_block(3, "meta tensor")
    assert len(block) == 3
    assert block.finite_count.tolist() == [0, 0, 0]
    assert np.isnan(block.l2).all()
    assert block.reasons == ("meta tensor",) * 3
    assert len(empty_block()) == 0


def test_concat_and_take_are_inverse(assert_agree):
    block = _blocks(3, 50, 7, 1)
    parts = [take(block, [i]) for i in range(4)]
    assert_agree(concat(parts), block)
    assert_agree(take(take(block, [3, 1, 0, 2]), [2, 1, 3, 0]), block)
    assert_agree(take(block, np.array([False, True, False, True])), concat([parts[1], parts[3]]))
    assert len(take(block, [])) == 0
    assert len(concat([])) == 0


def test_concat_keeps_reasons():
    block = concat([_blocks(3), empty_block(1, "why"), _blocks(2)])
    assert block.reasons == (None, "why", None)
    assert take(block, [1, 0]).reasons == ("why", None)


def test_dense_has_every_bin():
    block = _blocks(500)
    assert dense(block, 0).sum() == 1000
    assert dense(block, 0).shape == (2048,)


def test_scalar_block_equals_reference(assert_agree):
    values = [0.1, -7.0, 0.0, -0.0, np.nan, np.inf, -np.inf, 1e300, 5e-324]
    block = scalar_block(values)
    assert_agree(block, reference.summarize([np.array(v) for v in values]))
    np.testing.assert_array_equal(block.scalar_values, values)


@settings(max_examples=150, deadline=None)
@given(st.lists(floats, min_size=1, max_size=6), st.data())
def test_merge_equals_one_pass_over_all(assert_agree, arrays, data):
    groups = data.draw(st.lists(st.integers(0, 2), min_size=len(arrays), max_size=len(arrays)))
    merged = merge(reference.summarize(arrays), groups, 3)
    whole = [
        np.concatenate(
            [a for a, g in zip(arrays, groups, strict=True) if g == k] or [np.zeros(0, np.float32)]
        )
        for k in range(3)
    ]
    assert_agree(merged, reference.summarize(whole), rtol=1e-9)


@settings(max_examples=100, deadline=None)
@given(floats, floats, floats)
def test_merge_is_associative(assert_agree, a, b, c):
    rows = reference.summarize([a, b, c])
    left = merge(concat([merge(take(rows, [0, 1]), [0, 0], 1), take(rows, [2])]), [0, 0], 1)
    right = merge(concat([take(rows, [0]), merge(take(rows, [1, 2]), [0, 0], 1)]), [0, 0], 1)
    assert_agree(left, right, rtol=1e-9)


def test_merge_of_extreme_float64_does_not_overflow(assert_agree):
    a, b = np.array([1e308, -1e307]), np.array([3e307, 1e308])
    merged = merge(reference.summarize([a, b]), [0, 0], 1)
    assert_agree(merged, reference.summarize([np.concatenate([a, b])]), rtol=1e-9)
    assert np.isfinite(merged.std[0])


def test_merge_many_groups_equals_few(assert_agree):
    block = _blocks(*range(1, 60))
    groups = np.arange(59) * 1000
    merged = merge(block, groups, 59_000)
    assert_agree(take(merged, groups), block)
    assert merged.count[1] == 0


def test_merge_weights_channels_by_count(assert_agree):
    a, b = RNG.standard_normal((4, 3)), np.maximum(RNG.standard_normal((2, 3)), 0)
    merged = merge(reference.summarize([a, b], channel_axes=[1, 1]), [0, 0], 1)
    assert_agree(merged, reference.summarize([np.concatenate([a, b])], channel_axes=[1]), rtol=1e-6)


def test_merge_leaves_out_channels_of_different_number():
    block = reference.summarize([np.ones((2, 3)), np.ones((2, 4)), np.ones(2)], channel_axes=[1, 1, None])
    assert len(merge(block, [0, 0, 0], 1).channel_mean) == 0
    assert len(merge(block, [0, 1, 0], 2).channel_mean) == 7


def test_merge_drops_a_reason_when_another_row_was_measured():
    rows = concat([empty_block(2, "meta tensor"), _blocks(3)])
    assert merge(rows, [0, 1, 0], 2).reasons == (None, "meta tensor")


@settings(max_examples=200, deadline=None)
@given(
    npst.arrays(
        np.float32,
        st.integers(1, 200),
        elements=st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False),
    ),
    st.lists(st.floats(0, 1), min_size=1, max_size=5),
)
def test_quantile_is_within_the_stated_error(array, q):
    got = quantile(reference.summarize([array]), q)[0]
    want = np.quantile(array.astype(np.float64), q, method="inverted_cdf")
    assert (np.abs(got - want) <= RELATIVE_ERROR * np.abs(want) * (1 + 1e-9)).all()


def test_quantile_ends_are_exact_and_rows_are_apart():
    arrays = [
        np.array([-3.3, 0, 0, 7.7]),
        np.array([np.nan, np.inf]),
        np.array([5.1]),
        np.zeros(9),
        np.zeros(0),
    ]
    got = quantile(reference.summarize(arrays), [0, 0.5, 1])
    want = [[-3.3, 0, 7.7], [np.nan] * 3, [5.1] * 3, [0] * 3, [np.nan] * 3]
    np.testing.assert_array_equal(got, want)


def test_quantile_of_taken_rows():
    block = take(_blocks(10, 20, 30), [2, 0])
    assert quantile(block, [0.5]).shape == (2, 1)
    assert quantile(block, []).shape == (2, 0)
    assert quantile(empty_block(), [0.5]).shape == (0, 1)


@pytest.mark.parametrize("q", [-1.0, 2.0])
def test_quantile_outside_of_0_to_1_is_clipped(q):
    block = _blocks(10)
    assert quantile(block, [q])[0, 0] in (block.min[0], block.max[0])


def test_ordinary_numbers_give_the_same_rows_with_and_without_extreme_ones():
    numbers = [0.1, -3.0, 1e-30, 7e30, 2.0**-100]
    alone, mixed = scalar_block(numbers), scalar_block([*numbers, 0.0, np.nan])
    for name in ("count", "nan_count", "zero_count", "min", "max", "mean", "std", "l1", "l2", "hist_bins"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(mixed, name)[: len(numbers)])
    assert alone.hist_offsets.tolist() == mixed.hist_offsets[: len(numbers) + 1].tolist()


def test_concat_joins_slices_of_tables():
    block = scalar_block([1.0, 2.0, 0.0, 4.0])
    ragged = ("hist_bins", "hist_counts", "channel_zero_frac", "channel_mean", "reasons")
    columns = {one.name: getattr(block, one.name) for one in fields(block) if one.name not in ragged}
    last_three = replace(block, **{name: column[1:] for name, column in columns.items()})
    joined = concat([last_three, empty_block(), take(block, [3, 2])])
    assert joined.hist_offsets.tolist() == [0, 1, 1, 2, 3, 3]
    assert joined.mean.tolist() == [2.0, 0.0, 4.0, 4.0, 0.0]
    assert joined.hist_bins.tolist() == bin_of(np.array([2.0, 4.0, 4.0])).tolist()
