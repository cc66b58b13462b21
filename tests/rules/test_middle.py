from __future__ import annotations

import numpy as np
import pytest

from tdbg_lab.rules.middle import median


@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (6,), (125,), (4, 7), (5, 7)])
def test_median_is_that_of_numpy(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_array_equal(median(values), np.median(values, axis=0))


def test_median_of_numbers_with_nan_or_infinities_is_that_of_numpy() -> None:
    nan, inf = np.nan, np.inf
    values = np.array(
        [[1.0, nan, inf, -inf], [2.0, 1.0, 3.0, 0.0], [0.0, 2.0, inf, 1.0], [5.0, nan, 0.0, 2.0]]
    )
    np.testing.assert_array_equal(median(values), np.median(values, axis=0))


def test_median_of_nothing_is_nan() -> None:
    assert np.isnan(median(np.zeros(0)))
