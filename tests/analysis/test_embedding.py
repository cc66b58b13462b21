from __future__ import annotations

import numpy as np
import pytest

from tdbg_lab.analysis.embedding import align, finite_rows, pca, pick_rows, tsne


@pytest.mark.parametrize(("n", "width"), [(50, 10), (60, 400), (500, 400)])
def test_pca_finds_the_directions_of_largest_variance(n, width):
    rng = np.random.default_rng(0)
    z = rng.normal(0, 0.05, (n, width))
    z[:, 3] += rng.normal(0, 10, n)
    z[:, 1] += rng.normal(0, 4, n)
    found, shares = pca(z)
    assert abs(np.corrcoef(found[:, 0], z[:, 3])[0, 1]) > 0.98
    assert abs(np.corrcoef(found[:, 1], z[:, 1])[0, 1]) > 0.98
    assert 1 >= shares.sum() > 0.9
    np.testing.assert_array_equal(found, pca(z)[0])


@pytest.mark.parametrize("z", [np.zeros((5, 3)), np.ones((1, 4)), np.empty((0, 4)), np.empty((3, 0))])
def test_pca_of_points_without_spread_is_zero(z):
    found, shares = pca(z)
    assert found.shape == (len(z), 2)
    assert not found.any()
    assert not shares.any()


def test_pca_does_not_overflow_on_huge_values():
    z = np.random.default_rng(0).normal(0, 1, (20, 5)) * 1e300
    assert np.isfinite(pca(z)[0]).all()


def test_align_undoes_a_turn_and_a_mirror():
    rng = np.random.default_rng(0)
    fixed = rng.normal(0, 1, (40, 2))
    turned = fixed @ np.array([[0.0, 1.0], [1.0, 0.0]]) + 5
    moved = align(turned, fixed)
    np.testing.assert_allclose(moved - moved.mean(axis=0), fixed - fixed.mean(axis=0), atol=1e-9)


def test_finite_rows_drops_and_counts():
    z = np.arange(24.0).reshape(4, 2, 3)
    z[1, 0, 0], z[3, 1, 2] = np.nan, np.inf
    found = finite_rows(z)
    assert found.rows.tolist() == [0, 2]
    assert found.values.shape == (2, 6)
    assert found.dropped == 2


def test_pick_rows_is_always_the_same_choice():
    assert pick_rows(5, 10).tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(pick_rows(10_000, 300), pick_rows(10_000, 300))
    assert len(set(pick_rows(10_000, 300).tolist())) == 300


def test_tsne_separates_clusters_and_a_warm_start_stays():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    z = rng.normal(0, 5, (3, 12))[labels] + rng.normal(0, 0.5, (120, 12))
    first = tsne(z, iterations=200)
    centres = np.array([first[labels == k].mean(axis=0) for k in range(3)])
    nearest = np.linalg.norm(first[:, None] - centres[None], axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.95
    moved = tsne(z + rng.normal(0, 0.02, z.shape), init=first, iterations=50)
    assert np.median(np.linalg.norm(moved - first, axis=1)) < 0.1 * np.ptp(first, axis=0).max()


@pytest.mark.parametrize("n", [0, 1, 3, 5])
def test_tsne_of_few_points_answers_something_finite(n):
    z = np.random.default_rng(0).normal(0, 1, (n, 4))
    found = tsne(z, iterations=20)
    assert found.shape == (n, 2)
    assert np.isfinite(found).all()


def test_tsne_ends_early_when_progress_says_so():
    seen = []

    def progress(share):
        seen.append(share)
        return len(seen) < 3

    z = np.random.default_rng(0).normal(0, 1, (50, 4))
    assert np.isfinite(tsne(z, iterations=400, progress=progress)).all()
    assert len(seen) < 10
