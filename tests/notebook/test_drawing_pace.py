"""How long a widget waits between two drawings."""

from __future__ import annotations

import pytest

from tdbg_lab.notebook.pace import Pace


@pytest.fixture
def pace():
    """A pace past its first drawing."""
    pace = Pace(interval_s=1.0, share=0.03, slowest_s=20.0)
    pace.wait_s(0.0)
    return pace


def test_pace_waits_the_interval_when_drawing_is_cheap(pace):
    assert pace.wait_s(0.001) == 1.0


@pytest.mark.parametrize("cost_s", [0.05, 0.2, 0.5])
def test_pace_keeps_the_share_of_a_core_when_drawing_is_dear(pace, cost_s):
    spent = waited = 0.0
    for _ in range(50):
        spent += cost_s
        waited += pace.wait_s(cost_s)
    assert spent / (spent + waited) <= 0.03 + 1e-9


def test_pace_never_waits_longer_than_the_slowest(pace):
    assert pace.wait_s(100.0) == 20.0


def test_pace_does_not_count_the_first_drawing():
    pace = Pace()
    assert pace.wait_s(0.001, drew=False) == 1.0
    assert pace.wait_s(5.0) == 1.0
    assert pace.wait_s(0.01) == 1.0


def test_pace_is_not_frozen_by_one_slow_turn(pace):
    for cost_s in (0.01, 0.01, 3.0):
        wait_s = pace.wait_s(cost_s)
    assert wait_s == 1.0
