import numpy as np
import pytest

from tdbg_lab.stats.participation import participation_ratio


@pytest.mark.parametrize("shape", [(200, 6), (20, 300)])
def test_it_is_that_of_the_principal_axes(shape):
    x = np.random.default_rng(0).normal(size=shape) * np.linspace(1, 5, shape[1])
    x -= x.mean(0)
    variances = np.linalg.svd(x, compute_uv=False) ** 2
    assert participation_ratio(x) == pytest.approx(variances.sum() ** 2 / (variances**2).sum())


def test_axes_that_share_the_variance_alike_are_counted():
    assert participation_ratio(np.vstack([np.eye(5), -np.eye(5)])) == pytest.approx(5)


def test_samples_on_a_line_have_one_and_equal_ones_none():
    line = np.outer(np.linspace(-1, 1, 9), np.arange(1, 5))
    assert participation_ratio(line) == pytest.approx(1)
    assert np.isnan(participation_ratio(np.zeros((9, 4))))
