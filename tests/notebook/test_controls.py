from __future__ import annotations

import threading

import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.notebook.controls import Controls
from tdbg_lab.notebook.live import LiveView
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
    parts.follow(run)
    assert slider.value == (0, 11)
    training.step()
    run.refresh()
    parts.follow(run)
    assert slider.value == (0, 12)
    assert chosen == []


def test_range_chosen_to_the_end_goes_on_with_the_run(controls, chosen, training):
    parts, slider = controls()
    run = open_run(training.path)
    parts.follow(run)
    slider.value = (5, 11)
    assert chosen == [("steps", [5, None])]
    training.step()
    run.refresh()
    parts.follow(run)
    assert slider.value == (5, 12)
    assert len(chosen) == 1


def test_range_that_is_given_without_an_end_goes_on_with_the_run(controls, training):
    parts, slider = controls(steps=[5, None])
    parts.follow(open_run(training.path))
    assert slider.value == (5, 11)


def test_range_that_ends_before_the_run_stays(controls, training):
    run = open_run(training.path)
    given, first = controls(steps=[2, 6])
    moved, second = controls()
    moved.follow(run)
    second.value = (2, 6)
    for parts, slider in ((given, first), (moved, second)):
        training.step()
        run.refresh()
        parts.follow(run)
        assert slider.value == (2, 6)
        assert slider.max == run.last_step


def test_choice_made_while_another_thread_sets_values_is_heard(controls, chosen, training):
    parts, slider = controls()
    parts.follow(open_run(training.path))
    parts._quiet = threading.get_ident() + 1
    slider.value = (5, 11)
    assert chosen == [("steps", [5, None])]


def made(view, **values):
    chosen = []
    return Controls(find_view(view).params, values, lambda *choice: chosen.append(choice)), chosen


def test_choices_are_called_by_their_labels_and_answered_by_their_values():
    parts, chosen = made("histogram")
    scale = parts._parts["scale"]
    assert scale.label == "Signed log"
    scale.label = "Linear"
    assert chosen == [("scale", "linear")]


def test_what_is_left_to_the_view_is_called_automatic(training):
    parts, chosen = made("histogram")
    parts.follow(open_run(training.path))
    tensor, mode = parts._parts["tensor"], parts._parts["mode"]
    assert (tensor.label, mode.label) == ("Automatic", "Automatic")
    tensor.value, mode.label = "gradient/layer0.weight", "Evaluation"
    mode.label = "Automatic"
    assert chosen == [("tensor", "gradient/layer0.weight"), ("mode", "eval"), ("mode", None)]


@pytest.mark.parametrize(
    ("view", "given", "words"),
    [
        ("histogram", {"scale": "lin"}, "'scale' must be one of signed_log, linear, not 'lin'"),
        ("histogram", {"n_out": "many"}, "'n_out' must be a whole number"),
        ("scalars", {"steps": [5, 2]}, r"'steps' must be a pair \[first, last\] with first <= last"),
        ("scalars", {"log": True}, "has no parameter 'log'"),
    ],
)
def test_what_does_not_fit_is_told_before_controls_are_made_of_it(training, view, given, words):
    with pytest.raises(ConfigError, match=words):
        LiveView(open_run(training.path), view, given)


def test_options_are_hidden_until_they_are_asked_for():
    parts, chosen = made("histogram")
    row, more = parts.box.children
    *shown, opens = row.children
    assert shown == [parts._parts["tensor"], parts._parts["scale"]]
    assert parts._parts["n_out"] in more.children
    assert more.layout.display == "none"
    opens.value = True
    assert more.layout.display == "flex"
    assert chosen == []


def test_tensor_that_the_view_names_is_shown_without_being_chosen(training):
    parts, chosen = made("histogram")
    parts.set("tensor", "activation/layer0")
    parts.follow(open_run(training.path))
    assert parts._parts["tensor"].value == "activation/layer0"
    assert chosen == []
