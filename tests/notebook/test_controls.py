from __future__ import annotations

import threading

import pytest

from tdbg_lab.notebook.controls import Controls
from tdbg_lab.run import open_run
from tdbg_lab.views import find_view


@pytest.fixture
def chosen():
    """What the controls report."""
    return []


@pytest.fixture
def controls(chosen):
    """Controls of a view with a range of steps; answers them and the slider of steps."""

    def make(**values):
        controls = Controls(find_view("scalars").params, values, lambda *choice: chosen.append(choice))
        return controls, controls._parts["steps"]

    return make


def test_range_follows_the_run_while_the_reader_has_chosen_none(controls, chosen, training):
    parts, slider = controls()
    run = open_run(training.path)
    assert parts.follow(run) == {}
    assert slider.value == (0, 11)
    training.step()
    run.refresh()
    assert parts.follow(run) == {}
    assert slider.value == (0, 12)
    assert chosen == []


def test_range_chosen_to_the_end_goes_on_with_the_run(controls, chosen, training):
    parts, slider = controls()
    run = open_run(training.path)
    parts.follow(run)
    slider.value = (5, 11)
    assert chosen == [("steps", [5, 11])]
    training.step()
    run.refresh()
    assert parts.follow(run) == {"steps": [5, 12]}
    assert slider.value == (5, 12)


def test_range_that_ends_before_the_run_stays(controls, training):
    run = open_run(training.path)
    given, first = controls(steps=[2, 6])
    moved, second = controls()
    moved.follow(run)
    second.value = (2, 6)
    for parts, slider in ((given, first), (moved, second)):
        training.step()
        run.refresh()
        assert parts.follow(run) == {}
        assert slider.value == (2, 6)
        assert slider.max == run.last_step


def test_choice_made_while_another_thread_sets_values_is_heard(controls, chosen, training):
    parts, slider = controls()
    parts.follow(open_run(training.path))
    parts._quiet = threading.get_ident() + 1
    slider.value = (5, 11)
    assert chosen == [("steps", [5, 11])]
