from __future__ import annotations

import pytest

from tdbg_lab.notebook.pace import Pace


def test_pace_waits_the_interval_when_drawing_is_cheap():
    assert Pace(interval_s=1.0).wait_s(0.001) == 1.0


@pytest.mark.parametrize("cost_s", [0.05, 0.2, 0.5])
def test_pace_keeps_the_share_of_a_core_when_drawing_is_dear(cost_s):
    pace = Pace(share=0.03)
    spent = waited = 0.0
    for _ in range(50):
        spent += cost_s
        waited += pace.wait_s(cost_s)
    assert spent / (spent + waited) <= 0.03 + 1e-9


def test_pace_never_waits_longer_than_the_slowest():
    assert Pace(slowest_s=30.0).wait_s(100.0) == 30.0


def test_pace_pays_what_a_long_turn_left_over_in_the_next_wait():
    pace = Pace(share=0.03, slowest_s=30.0)
    pace.wait_s(1.2)
    assert pace.wait_s(0.0) > 1.0
    assert pace.wait_s(0.0) == 1.0
