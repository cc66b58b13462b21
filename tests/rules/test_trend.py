from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tdbg_lab.rules.trend import noise_of, trend_of


def noisy(level: np.ndarray, sigma: float, seed: int = 0) -> np.ndarray:
    return level + np.random.default_rng(seed).normal(0, sigma, len(level))


def test_noise_is_measured_without_the_trend() -> None:
    falling = noisy(np.linspace(10, 0, 2000), 0.3)
    assert noise_of(falling) == pytest.approx(0.3, rel=0.1)


def test_noise_is_not_moved_by_spikes() -> None:
    flat = noisy(np.ones(500), 0.1)
    flat[::50] = 100
    assert noise_of(flat) == pytest.approx(0.1, rel=0.25)


def test_slow_fall_below_the_noise_is_seen() -> None:
    trend = trend_of(noisy(np.linspace(2.3, 2.25, 600), 0.05))
    assert trend is not None
    assert trend.fall_z > 2
    assert trend.drop_frac == pytest.approx(0.05 / 2.3 * 0.9, rel=0.3)


def test_flat_series_falls_by_chance_only() -> None:
    scores = [trend_of(noisy(np.full(150, 2.3), 0.1, seed)) for seed in range(200)]
    high = np.mean([abs(trend.fall_z) > 2 for trend in scores if trend])
    assert high < 0.12


def test_constant_series_has_no_fall_and_no_noise() -> None:
    trend = trend_of(np.full(50, 3.0))
    assert trend is not None
    assert (trend.noise, trend.fall_z, trend.drop_frac) == (0, 0, 0)


def test_points_that_are_not_finite_do_not_count() -> None:
    values = np.r_[np.nan, np.linspace(3, 1, 20), np.inf, -np.inf]
    trend = trend_of(values)
    assert trend is not None
    assert trend.points == 20
    assert trend_of(np.full(100, np.nan)) is None


@given(st.lists(st.floats(-1e300, 1e300), min_size=9, max_size=60))
def test_any_finite_series_has_a_trend(values: list[float]) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        trend = trend_of(np.array(values))
    assert trend is not None
    assert trend.points == len(values)
