from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tdbg_lab.rules.series import Series


@given(st.lists(st.tuples(st.integers(0, 60), st.floats(allow_nan=False)), max_size=200))
def test_series_holds_the_last_value_of_each_step_in_order(points: list[tuple[int, float]]) -> None:
    series, truth = Series(), {}
    for step, value in points:
        series.put(step, value)
        truth[step] = value
        steps, values = series.until(10**9)
        assert steps.tolist() == sorted(truth)
        assert values.tolist() == [truth[step] for step in sorted(truth)]


def test_series_gives_nothing_after_the_asked_step() -> None:
    series = Series()
    for step in range(10):
        series.put(step, step / 2)
    assert series.until(4).steps.tolist() == [0, 1, 2, 3, 4]


def test_series_gives_a_value_that_was_replaced_when_it_was_full() -> None:
    series = Series()
    for step in range(16):
        series.put(step, 0.0)
    assert series.until(15).values[-1] == 0.0
    series.put(15, 1.0)
    assert series.until(15).values[-1] == 1.0


def test_series_is_bounded_and_keeps_start_and_end() -> None:
    series = Series()
    for step in range(50_000):
        series.put(step, float(step))
        assert series.until(step).steps[-1] == step
    steps, values = series.until(50_000)
    assert len(steps) <= 1024 + 2 * 4096
    assert steps[:1024].tolist() == list(range(1024))
    assert steps[-4096:].tolist() == list(range(50_000 - 4096, 50_000))
    assert np.array_equal(steps, values)


def test_series_that_is_full_takes_a_step_from_before() -> None:
    """As where training goes back to a checkpoint: from full to less, and on to full again."""
    series = Series()
    for step in range(1024 + 2 * 4096):
        series.put(10 * step, 0.0)
    for step in range(5, 50_005, 10):
        series.put(step, 1.0)
    steps, values = series.until(10**9)
    assert np.all(np.diff(steps) > 0)
    assert np.array_equal(values, steps % 10 == 5)
    assert steps[0] == 0
    assert steps[-1] == 92_150
