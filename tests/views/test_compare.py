"""Two runs side by side."""

from __future__ import annotations

import pytest
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.run import open_run
from tdbg_lab.testing import fake_run
from tdbg_lab.views import Param, Preparation, call_view, view
from tests.views.timed import made


@pytest.fixture(scope="module")
def starved(tmp_path_factory):
    """Steps of 10 ms, 6 of them for data."""
    return made(tmp_path_factory.mktemp("runs") / "starved", 60)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Steps of 5 ms, 1 of them for data."""
    return made(tmp_path_factory.mktemp("runs") / "quick", 30, data_of_rank_0=-5)


def told(figure):
    return figure.layout.meta["tdbg"]["caption"]


def test_compare_says_in_words_what_differs_most(starved, quick):
    figure = call_view(starved, "compare", {"other": quick})
    assert told(figure) == (
        "A step takes 10 ms here and 5 ms in quick (median of 59 steps and 29). What differs most: data "
        "loading takes 60.0% of a step here (6 ms), 20.0% there (1 ms)."
    )
    here, there = figure.data
    assert (here.name, there.name) == ("starved", "quick")
    assert here.x[0] == "data"
    assert (here.y[0], there.y[0]) == pytest.approx((6.0, 1.0))
    assert (here.text[0], there.text[0]) == ("60.0%", "20.0%")


def test_compare_says_when_nothing_differs(starved, tmp_path):
    again = made(tmp_path / "again", 60)
    assert "no phase differs by more than 2% of a step" in told(
        call_view(starved, "compare", {"other": again})
    )


def test_step_times_of_both_are_shares_over_the_same_bins(starved, quick):
    here, there = call_view(starved, "compare", {"other": quick, "show": "steps"}).data
    assert list(here.x) == list(there.x)
    assert (sum(here.y), sum(there.y)) == pytest.approx((100.0, 100.0))
    assert here.x[list(here.y).index(max(here.y))] > there.x[list(there.y).index(max(there.y))]


def test_losses_beyond_the_most_that_are_drawn_are_counted(tmp_path):
    runs = []
    for name in ("one", "two"):
        handle = tdbg.attach(nn.Linear(1, 1), store=tmp_path / name, profiler=False, rules="none")
        handle.log(**{f"loss_{i}": 1.0 for i in range(6)})
        handle.detach()
        runs.append(handle.run)
    figure = call_view(runs[0], "compare", {"other": runs[1], "show": "losses"})
    assert len(figure.data) == 2 * 4
    assert "4 of 6 losses are drawn." in told(figure)


def test_losses_of_both_are_drawn_over_steps(tmp_path):
    one = open_run(fake_run(tmp_path / "one", name="same", steps=20, layers=1))
    two = open_run(fake_run(tmp_path / "two", name="same", steps=30, layers=1, seed=1))
    figure = call_view(one, "compare", {"other": two, "show": "losses"})
    assert [trace.name for trace in figure.data] == ["same (one)", "same (two)"]
    assert [int(trace.x[-1]) for trace in figure.data] == [19, 29]
    assert "loss/CrossEntropyLoss is " in told(figure)
    assert "at step 29 in same (two)" in told(figure)


def test_what_cannot_be_compared_is_said_in_the_figure(starved, ranks, nothing):
    def says(run, **params):
        figure = call_view(run, "compare", params)
        assert not figure.data
        return told(figure)

    assert says(starved).startswith("Choose the run to compare with.")
    assert says(starved, other=open_run(starved.path)).startswith("This is the same run on both sides.")
    assert says(starved, other=ranks).startswith("No step of ranks was timed.")
    assert says(ranks, other=starved, show="steps").startswith("No step of ranks was timed.")
    assert says(starved, other=nothing, show="losses").startswith("The two runs have no loss in common.")


def test_hostile_names_are_escaped(hostile, starved):
    for show in ("phases", "steps", "losses"):
        assert "<img" not in str(call_view(starved, "compare", {"other": hostile, "show": show}).data)
    hostile.edit(name="<img src=x>")
    hostile.refresh()
    text = str(call_view(starved, "compare", {"other": hostile}).layout.annotations)
    assert "img src=x" in text
    assert "<img" not in text


def test_other_run_is_opened_by_the_host_only(starved):
    with pytest.raises(ConfigError, match=r"'other' must be an opened run: tdbg\.open_run\(path\)"):
        call_view(starved, "compare", {"other": str(starved.path)})


def test_view_prepared_elsewhere_takes_no_second_run():
    slow = Preparation(lambda *_: None, lambda _: True)
    with pytest.raises(ConfigError, match="cannot take a second run"):
        view("test_slow", params=(Param("other", "Other", "run"),), preparation=slow)(
            lambda run, other=None: None
        )
