"""One scalar of several runs."""

from __future__ import annotations

import pytest
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.run import open_run
from tdbg_lab.testing import fake_run
from tdbg_lab.views import call_view, find_view
from tdbg_lab.views.run_settings import options_in


def logged(path, values, *, name="loss", title=None, **arguments):
    """A run that logs these numbers, one at each step."""
    net = nn.Linear(1, 1)
    handle = tdbg.attach(
        net, store=path, name=title, profiler=False, rules="none", save_every=10**6, **arguments
    )
    for value in values:
        handle.log(**{name: value})
        handle.advance()
    handle.detach()
    return handle.run


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Three runs with other learning rates; the last one is called like the second."""
    folder = tmp_path_factory.mktemp("sweep")
    made = []
    for at, (rate, name) in enumerate([(0.1, "first"), (0.01, "again"), (0.001, "again")]):
        parameters = {"lr": rate, "batch": 64, "layers": [3, 4]}
        values = [1.0 + at, 0.5 + at, 0.25 + at]
        made.append(logged(folder / f"run{at}", values, title=name, hyperparameters=parameters))
    return made


def told(figure):
    return figure.layout.meta["tdbg"]["caption"]


def test_each_run_is_a_line_that_says_in_what_it_differs(sweep):
    figure = call_view(sweep[0], "runs", {"others": sweep[1:]})
    first, second, last = figure.data
    assert first.name == "first [lr=0.1]"
    assert (second.name, last.name) == ("again (run1) [lr=0.01]", "again (run2) [lr=0.001]")
    assert first.y.tolist() == [1.0, 0.5, 0.25]
    assert len({trace.line.color for trace in figure.data}) == 3
    assert told(figure) == "loss of 3 of 3 runs; at the end 0.25 in first to 2.25 in again (run2)."
    assert figure.layout.meta["tdbg"]["tensor"] == "loss"


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("train.py --lr 0.1 --batch-size=32 --amp", {"lr": "0.1", "batch_size": "32", "amp": "yes"}),
        ("train.py optimizer.lr=0.1 +seed=3 data", {"optimizer.lr": "0.1", "seed": "3"}),
        ("train.py --shift -0.5 -e 3 --decay -1e-4", {"shift": "-0.5", "e": "3", "decay": "-1e-4"}),
        ("train.py --note 'a b' --filter key=value", {"note": "a b", "filter": "key=value"}),
        ("train.py --note 'cut off", {}),
        ("", {}),
    ],
)
def test_options_are_read_off_a_command_line(command, options):
    assert options_in(command) == options


def test_runs_of_a_script_differ_in_their_options(tmp_path, monkeypatch):
    runs = []
    for at, rate in enumerate(["0.1", "0.01"]):
        typed = ["train.py", "--lr", rate, "--epochs", "3", "--run-name", f"r{at}", "--data", f"in/{at}"]
        monkeypatch.setattr("sys.argv", typed)
        runs.append(logged(tmp_path / f"run{at}", [1.0], hyperparameters={"scale": 1 / (3 + at)}))
    figure = call_view(runs[0], "runs", {"others": runs[1:]})
    assert [trace.name for trace in figure.data] == [
        "run0 [scale=0.3333, lr=0.1]",
        "run1 [scale=0.25, lr=0.01]",
    ]


def test_scalar_that_most_of_the_runs_have_is_drawn_and_the_others_are_counted(sweep, tmp_path):
    other = logged(tmp_path / "other", [3.0], name="other_loss")
    figure = call_view(other, "runs", {"others": sweep})
    assert len(figure.data) == 3
    assert told(figure).startswith("loss of 3 of 4 runs; ")
    figure = call_view(other, "runs", {"others": sweep, "tensor": "other_loss"})
    assert [trace.name for trace in figure.data] == ["other"]
    assert told(figure) == "other_loss of 1 of 4 runs; at the end 3 in other."


def test_runs_stand_over_the_time_since_each_began(tmp_path):
    runs = [open_run(fake_run(tmp_path / name, name=name, steps=20, layers=1)) for name in "ab"]
    figure = call_view(runs[0], "runs", {"others": runs[1:], "along": "time"})
    for run, trace in zip(runs, figure.data, strict=True):
        series = run.scalars("loss/CrossEntropyLoss")
        seconds = (series.time_ns - run.info.created_ns) / 1e9
        assert trace.x.tolist() == pytest.approx(seconds.tolist())
    assert figure.layout.xaxis.title.text == "Time since the run began (s)"


def test_smoothing_and_a_logarithmic_axis_are_taken(tmp_path):
    runs = [logged(tmp_path / name, [1.0, 2.0] * 50) for name in "ab"]
    figure = call_view(runs[0], "runs", {"others": runs[1:], "smoothing": 90, "log_y": True})
    assert figure.layout.yaxis.type == "log"
    assert all(1.2 < trace.y[-1] < 1.8 for trace in figure.data)


def test_lines_are_thin_where_colours_repeat(tmp_path):
    runs = [logged(tmp_path / f"run{at}", [1.0]) for at in range(9)]
    figure = call_view(runs[0], "runs", {"others": runs[1:]})
    assert [trace.line.width for trace in figure.data] == 8 * [2] + [1]
    assert figure.data[0].line.color == figure.data[-1].line.color


def test_what_cannot_be_drawn_is_said_in_the_figure(sweep, tmp_path, nothing):
    def says(run, **params):
        figure = call_view(run, "runs", params)
        assert not figure.data
        return told(figure)

    assert says(sweep[0]).startswith("Choose the runs to draw beside this one.")
    assert says(sweep[0], others=[]).startswith("Choose the runs to draw beside this one.")
    assert says(sweep[0], others=[open_run(sweep[0].path)]).startswith("Choose the runs")
    empty = logged(tmp_path / "empty", [])
    assert says(nothing, others=[empty]).startswith("None of the runs has a loss or a metric.")
    assert says(sweep[0], others=sweep[1:], mode="predict").startswith("No run has a value of loss yet.")


def test_values_that_are_not_finite_are_told(tmp_path):
    runs = [logged(tmp_path / name, [float("nan")]) for name in "ab"]
    figure = call_view(runs[0], "runs", {"others": runs[1:]})
    assert told(figure) == "loss of 2 of 2 runs; 2 runs diverged."
    one = logged(tmp_path / "c", [2.0, float("inf"), 1.0])
    figure = call_view(one, "runs", {"others": runs, "along": "time"})
    marks = [trace for trace in figure.data if trace.mode == "markers" and trace.text is not None]
    assert [trace.text[0] for trace in marks] == ["+inf", "NaN", "NaN"]
    assert all("after %{x:.4~g} s" in trace.hovertemplate for trace in marks)


def test_a_run_that_explodes_leaves_the_picture_and_not_the_others_on_one_line(tmp_path):
    nan = float("nan")
    curves = [[2.0, 0.5, 0.1], [2.0, 0.7, 0.4], [2.0, 1e30, nan]]
    runs = [logged(tmp_path / f"run{at}", values) for at, values in enumerate(curves)]
    figure = call_view(runs[0], "runs", {"others": runs[1:]})
    assert figure.layout.yaxis.range == pytest.approx([0.005, 2.095])
    assert told(figure).endswith(
        "1 run diverged. 1 run leaves the picture, as the others would be one line; a double click shows all."
    )
    line, mark = figure.data[2:]
    assert line.y[1] == 1e30, "nothing is drawn otherwise than it is"
    assert list(mark.y) == [2.0], "where it is not finite is seen all the same"
    figure = call_view(runs[0], "runs", {"others": runs[1:], "log_y": True})
    assert figure.layout.yaxis.range == pytest.approx([-1.0651, 0.3661], abs=1e-4)


def test_runs_of_which_all_leave_the_picture_are_shown_where_they_stay(tmp_path):
    runs = [logged(tmp_path / f"run{at}", [2.0, 1.0, 1e9] + 57 * [1.0]) for at in range(3)]
    figure = call_view(runs[0], "runs", {"others": runs[1:]})
    assert figure.layout.yaxis.range == pytest.approx([0.95, 2.05])
    assert "3 runs leave the picture" in told(figure)


@pytest.mark.parametrize(
    "curves",
    [
        [[2.0, 0.002], [2.0, 1.9]],  # one has learnt, the other has not
        [[1.0], [90.0]],
        [[0.0], [5.0]],
        [[300.0, 2.0] + 98 * [1.0], [300.0, 2.0] + 98 * [1.0], [300.0, 299.0]],  # a steep beginning
        [[1e30], [2e30], [1.5e30]],
        [[float("nan")], [1.0], [1.0]],
    ],
)
def test_what_is_within_reach_is_shown_whole(tmp_path, curves):
    runs = [logged(tmp_path / f"run{at}", values) for at, values in enumerate(curves)]
    figure = call_view(runs[0], "runs", {"others": runs[1:]})
    assert figure.layout.yaxis.range is None
    assert "leave" not in told(figure)


def test_hostile_names_are_escaped(hostile, sweep):
    hostile.edit(name="<img src=x>")
    hostile.refresh()
    assert "<img" not in str(call_view(hostile, "runs", {"others": sweep}).data)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("path", r"'others' must be a list of opened runs \(at most 31\), not 'path'"),
        (["path"], r"'others' must be an opened run: tdbg\.open_run\(path\)"),
        ([None] * 32, r"'others' must be a list of opened runs \(at most 31\)"),
    ],
)
def test_wrong_runs_are_said(sweep, value, words):
    with pytest.raises(ConfigError, match=words):
        call_view(sweep[0], "runs", {"others": value})


def test_bound_of_a_list_of_runs_is_told_to_hosts():
    others, *_ = find_view("runs").as_dict()["params"]
    assert (others["kind"], others["maximum"]) == ("runs", 31)


def over_settings(runs, **params):
    return call_view(runs[0], "runs", {"others": runs[1:], "along": "settings", **params})


def plots(figure):
    """What is drawn, by setting; the column of the table beside it is not."""
    return {trace.name: trace for trace in figure.data if trace.visible is not False}


def test_runs_stand_over_the_settings_in_which_they_differ(tmp_path):
    tried = [(0.1, 16, "relu", True), (0.001, 32, "tanh", False), (0.01, 32, "relu", True)]
    runs = []
    for at, (rate, batch, activation, amp) in enumerate(tried):
        given = {"lr": rate, "batch": batch, "activation": activation, "amp": amp, "epochs": 3}
        runs.append(logged(tmp_path / f"run{at}", [9.0, 3.0 - at], hyperparameters=given))
    figure = over_settings(runs)
    drawn = plots(figure)
    assert list(drawn) == ["lr", "batch", "activation", "amp"]
    assert all(list(trace.y) == [3.0, 2.0, 1.0] for trace in drawn.values())
    assert list(drawn["lr"].x) == [0.1, 0.001, 0.01]
    assert list(drawn["activation"].x) == ["relu", "tanh", "relu"]
    assert list(drawn["amp"].x) == ["yes", "no", "yes"]
    layout = figure.layout
    axes = [layout.xaxis, layout.xaxis2, layout.xaxis3, layout.xaxis4]
    assert [axis.type for axis in axes] == ["log", "linear", "category", "category"]
    assert [axis.title.text for axis in axes] == list(drawn)
    assert {layout.yaxis2.matches, layout.yaxis3.matches, layout.yaxis4.matches} == {"y"}
    assert told(figure) == "loss of 3 of 3 runs; at the end 1 in run2 to 3 in run0."


def test_run_that_diverged_is_a_cross_above_the_others(tmp_path):
    ends = [[1.0, 0.5], [1.0, 1e30, float("nan")], [1.0, 0.25], [float("nan")]]
    runs = [logged(tmp_path / f"run{at}", ends[at], hyperparameters={"lr": 0.1 * at}) for at in range(4)]
    figure = over_settings(runs)
    assert told(figure) == "loss of 4 of 4 runs; at the end 0.25 in run2 to 0.5 in run0; 2 runs diverged."
    (trace,) = plots(figure).values()
    assert list(trace.y) == [0.5, 0.5, 0.25]
    assert list(trace.marker.symbol) == ["circle", "x", "circle"]
    assert trace.hovertext[1] == "NaN, 1e30 before"
    (alone,) = plots(over_settings(runs[1:2] + runs[3:])).values()
    assert list(alone.y) == [1e30]


def test_run_that_is_about_to_diverge_is_a_cross_too(tmp_path):
    ends = [[1.0, 0.5], [1.0, 2250.0], [1.0, 0.25]]
    runs = [logged(tmp_path / f"run{at}", ends[at], hyperparameters={"lr": 0.1 * at}) for at in range(3)]
    figure = over_settings(runs)
    (trace,) = plots(figure).values()
    assert list(trace.y) == [0.5, 0.5, 0.25]
    assert list(trace.marker.symbol) == ["circle", "x", "circle"]
    assert trace.hovertext[1] == "2250"
    assert "2250 in run1" in told(figure)


def test_setting_that_a_run_lacks_leaves_it_out_of_one_plot(tmp_path):
    given = [{"lr": 0.1, "decay": 0.2}, {"lr": 0.2}, {"lr": 0.3, "decay": "none"}]
    runs = [logged(tmp_path / f"run{at}", [1.0], hyperparameters=each) for at, each in enumerate(given)]
    drawn = plots(over_settings(runs))
    assert list(drawn["lr"].text) == ["run0", "run1", "run2"]
    assert list(drawn["decay"].text) == ["run0", "run2"]
    assert list(drawn["decay"].x) == ["0.2", "none"]  # side by side, where one is no number


def test_smoothed_ends_are_taken(tmp_path):
    runs = [logged(tmp_path / f"run{at}", [1.0, 2.0] * 50, hyperparameters={"lr": at}) for at in range(2)]
    (trace,) = plots(over_settings(runs, smoothing=90)).values()
    assert all(1.2 < value < 1.8 for value in trace.y)


def test_settings_that_are_not_drawn_are_told(tmp_path, sweep):
    runs = [
        logged(tmp_path / f"run{at}", [1.0], hyperparameters={f"part{part}": at for part in range(8)})
        for at in range(2)
    ]
    figure = over_settings(runs)
    assert len(plots(figure)) == 6
    assert told(figure).endswith(" The first 6 of 8 settings are drawn.")
    alike = [logged(tmp_path / name, [1.0]) for name in "ab"]
    assert told(over_settings(alike)).startswith("These runs do not differ in a setting.")


def test_hostile_settings_are_escaped(tmp_path):
    bad = "<img src=x>"
    runs = [
        logged(tmp_path / name, [1.0], title=bad, hyperparameters={bad: f"{name} {bad}", "%{y}": name})
        for name in "ab"
    ]
    figure = over_settings(runs)
    assert "<img" not in str([trace.x for trace in figure.data]) + str([trace.text for trace in figure.data])
    assert "<img" not in str([trace.customdata for trace in figure.data])
    assert "<img" not in str([figure.layout.xaxis, figure.layout.xaxis2])
    assert "<img" not in str([trace.hovertemplate for trace in figure.data])


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (64, "64"),
        (1e-4, "0.0001"),
        (1 / 3, "0.3333"),
        (10**8, "1e+08"),
        ("2" * 20, "22222…"),
        (10**400, "10000…"),
    ],
)
def test_settings_are_told_in_short(tmp_path, value, told):
    runs = [
        logged(tmp_path / name, [1.0], hyperparameters={"s": given})
        for name, given in zip("ab", (value, 5), strict=True)
    ]
    assert told in call_view(runs[0], "runs", {"others": runs[1:]}).data[0].name
