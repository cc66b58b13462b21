from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.records import Kind, TensorKey
from tdbg_lab.testing import fake_run
from tdbg_lab.views import call_view
from tdbg_lab.views.scalars import smooth
from tdbg_lab.views.style import caption_of


def _named(figure, name):
    return next(trace for trace in figure.data if trace.name == name)


def test_scalars_show_modes_as_line_styles(plain):
    figure = call_view(plain, "scalars", {"tensors": ["loss/CrossEntropyLoss"]})
    train, evaluation = (
        _named(figure, "loss/CrossEntropyLoss"),
        _named(figure, "loss/CrossEntropyLoss (eval)"),
    )
    assert train.line.dash == "solid"
    assert evaluation.line.dash == "dash"
    assert train.line.color == evaluation.line.color
    np.testing.assert_allclose(train.y, plain.scalars("loss/CrossEntropyLoss", mode="train").values)
    assert len(evaluation.x) == 4


def test_scalars_put_losses_metrics_and_learning_rates_in_plots_of_their_own(plain):
    figure = call_view(plain, "scalars")
    titles = [figure.layout[axis].title.text for axis in ("yaxis", "yaxis2", "yaxis3")]
    assert titles == ["Loss", "Metric", "LR"]
    assert {trace.xaxis for trace in figure.data} == {"x"}


def logged(path, **numbers):
    handle = tdbg.attach(nn.Linear(1, 1), store=path, profiler=False, rules="none")
    handle.log(**numbers)
    handle.detach()
    return handle.run


@pytest.mark.parametrize(
    "params", [{}, {"regex": "metric"}, {"tensors": [f"metric_{i:02}" for i in range(30)]}]
)
def test_scalars_say_how_many_more_there_are(tmp_path, params):
    run = logged(tmp_path / "run", **{f"metric_{i:02}": 1.0 for i in range(30)})
    figure = call_view(run, "scalars", params)
    assert len(figure.data) == 24
    assert caption_of(figure).startswith("24 scalars (of 30; choose others by name or pattern) over steps")


def test_scalars_show_a_few_of_many_learning_rates_and_the_loss_before_its_parts(tmp_path):
    layers = [nn.Linear(2, 2) for _ in range(12)]
    groups = [{"params": one.parameters(), "lr": 0.1 * 0.5**i} for i, one in enumerate(layers)]
    model, optimizer = nn.Sequential(*layers), torch.optim.SGD(groups)
    with tdbg.attach(model, optimizer=optimizer, store=tmp_path / "run", profiler=False) as handle:
        handle.log(a_part_of_the_loss=1.0)
        model(torch.randn(4, 2)).square().mean().backward()
        optimizer.step()
    run = tdbg.open_run(tmp_path / "run")
    figure = call_view(run, "scalars")
    rates = [f"optimizer/lr/{group}" for group in (0, 4, 7, 11)]
    assert [trace.name for trace in figure.data] == ["loss/objective", "a_part_of_the_loss", *rates]
    assert caption_of(figure).startswith("6 scalars (of 14; ")
    assert len(call_view(run, "scalars", {"regex": "optimizer/lr/"}).data) == 12


def test_scalars_leave_times_and_counts_of_trainers_out_until_they_are_asked_for(tmp_path):
    handle = tdbg.attach(nn.Linear(1, 1), store=tmp_path / "run", profiler=False, rules="none")
    handle.log(eval_accuracy=0.5, epoch=1.0, eval_runtime=2.0, train_samples_per_second=300.0)
    handle.log({"epoch/number": 1.0, "train/epoch": 1.0})
    handle.detach()
    run = handle.run
    assert [trace.name for trace in call_view(run, "scalars").data] == ["eval_accuracy"]
    asked = call_view(run, "scalars", {"tensors": ["epoch", "eval_runtime"]})
    assert {trace.name for trace in asked.data} == {"epoch", "eval_runtime"}
    assert len(call_view(run, "scalars", {"regex": "runtime|second"}).data) == 2


def test_scalars_of_a_boosting_without_metrics_say_what_it_lacks(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    callback = tdbg.XGBoostCallback(tmp_path / "run", profiler=False)
    rows = np.arange(20.0).reshape(10, 2)
    xgboost.train({"nthread": 1}, xgboost.DMatrix(rows, rows[:, 0]), 2, callbacks=[callback])
    figure = call_view(callback.run, "scalars")
    assert not figure.data
    assert "evals=[...]" in figure.layout.annotations[0].text


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("optimizer/lr/0", "Learning rate"),
        ("optimizer/lr/opt_g.0", "Learning rate"),
        ("optimizer/momentum/dense/kernel", "Optimizer"),
        ("optimizer/loss_scale", "Optimizer"),
        ("optimizer/skipped_steps", "Optimizer"),
    ],
)
def test_scalars_put_only_rates_beside_each_other_as_learning_rates(name, group):
    from tdbg_lab.views.scalars import _group

    assert _group(TensorKey(name, Kind.OPTIMIZER)) == group


def test_scalars_give_a_constant_room_around_its_value():
    from tdbg_lab.views.scalars import _room

    assert _room(np.array([0.001, np.nan, 0.001]), log_y=False) == {"range": [0.0, 0.002]}
    assert _room(np.array([0.001, 0.002]), log_y=False) == {}


def test_scalars_write_small_numbers_without_a_prefix_of_units(tmp_path):
    figure = call_view(logged(tmp_path / "run", tokens=2.5e6, lr=1e-5), "scalars")
    assert (figure.layout.yaxis.exponentformat, figure.layout.yaxis2.exponentformat) == (None, "e")


def test_scalars_mark_what_is_not_finite_where_it_happened(broken):
    figure = call_view(broken, "scalars", {"tensors": ["loss/bad"]})
    marks = next(trace for trace in figure.data if trace.mode == "markers")
    assert list(marks.x) == [1, 2, 3, 5, 6, 7, 9, 10, 11]
    assert list(marks.text[:3]) == ["NaN", "+inf", "\N{MINUS SIGN}inf"]
    assert np.isfinite(np.asarray(marks.y, dtype=float)).all()
    assert caption_of(figure) == "1 scalar over steps; loss/bad is not finite at step 11."


def test_scalars_of_a_long_run_keep_the_nan_and_both_ends(long):
    figure = call_view(long, "scalars", {"n_out": 20})
    line = next(trace for trace in figure.data if trace.mode == "lines")
    assert (line.x[0], line.x[-1]) == (0, 9999)
    assert len(line.x) <= 21
    assert 4321 in next(trace for trace in figure.data if trace.mode == "markers").x


def test_scalars_with_smoothing_keep_the_raw_line_faint(plain):
    figure = call_view(plain, "scalars", {"tensors": ["accuracy"], "mode": "train", "smoothing": 90})
    raw, smoothed = figure.data
    assert raw.opacity < 0.5
    assert np.std(np.diff(smoothed.y)) < np.std(np.diff(raw.y))


def test_smooth_passes_over_nan_and_starts_at_the_first_value():
    x = np.arange(5)
    found = smooth(x, np.array([np.nan, 2.0, np.nan, 2.0, 2.0]), 0.9)
    assert np.isnan(found[0])
    np.testing.assert_allclose(found[1:], 2.0)


def test_smooth_treats_rare_values_like_frequent_ones():
    x = np.arange(401)
    y = np.sin(x / 60)
    every, tenth = smooth(x, y, 0.95), smooth(x[::10], y[::10], 0.95)
    assert np.abs(every[::10] - tenth).max() < 0.2


@pytest.mark.parametrize("statistic", ["l2", "mean", "std", "min", "max", "l1"])
def test_statistics_draw_what_run_stats_says(plain, statistic):
    figure = call_view(plain, "statistics", {"tensors": ["layer2.weight"], "statistic": statistic})
    expected = plain.stats("layer2.weight", statistic, mode="train")
    np.testing.assert_allclose(figure.data[0].y, expected[statistic])
    np.testing.assert_array_equal(figure.data[0].x, expected["step"])


def test_statistics_of_a_deep_model_begin_with_layers_from_all_of_it(tmp_path):
    run = tdbg.open_run(fake_run(tmp_path / "run", steps=3, layers=30))
    names = [key.name for key in run.tensors(kind="gradient")]
    drawn = [trace.name for trace in call_view(run, "statistics").data]
    assert len(drawn) == 12
    assert (drawn[0] in names[0], drawn[-1] in names[-1]) == (True, True)


def test_statistics_say_when_they_leave_tensors_out(plain):
    caption = call_view(plain, "statistics", {"regex": "layer"}).layout.meta["tdbg"]["caption"]
    assert "tensors" in caption


@pytest.mark.parametrize("statistic", ["l2", "mean", "zero_share"])
def test_overview_cells_are_what_run_stats_says(plain, statistic):
    figure = call_view(plain, "overview", {"kind": "gradient", "statistic": statistic})
    heat = figure.data[0]
    names = plain.tensor_names(kind="gradient")
    assert [f"gradient/{label}" for label in heat.y] == names
    column = {"zero_share": "zero_frac"}.get(statistic, statistic)
    for row, name in enumerate(names):
        np.testing.assert_allclose(
            np.asarray(heat.customdata)[row], plain.stats(name, column, mode="train")[column], rtol=1e-6
        )


def test_overview_says_how_many_of_the_saved_steps_it_draws(plain, long):
    few = call_view(long, "overview", {"kind": "gradient", "n_out": 100})
    drawn = len(few.data[0].x)
    assert 50 < drawn <= 100
    assert f"1 tensor (gradients) over {drawn} of 10,000 saved steps" in few.layout.meta["tdbg"]["caption"]
    every = call_view(plain, "overview", {"kind": "gradient"})
    assert f"over {len(every.data[0].x)} saved steps" in every.layout.meta["tdbg"]["caption"]


def test_overview_colours_grow_with_the_value(plain):
    heat = call_view(plain, "overview", {"kind": "gradient"}).data[0]
    order = np.argsort(np.asarray(heat.customdata).ravel())
    assert (np.diff(np.asarray(heat.z).ravel()[order].astype(int)) >= 0).all()


def test_overview_has_colours_for_zero_and_for_what_is_not_finite(broken):
    figure = call_view(broken, "overview", {"kind": "gradient"})
    heat = figure.data[0]
    rows = {label: np.asarray(heat.z)[i] for i, label in enumerate(heat.y)}
    assert set(rows["zero"]) == {5}
    assert set(rows["all_nan"]) == {9}
    assert set(rows["bad"]) == {9}
    assert "exactly 0" in heat.colorbar.ticktext
    assert "NaN, inf" in heat.colorbar.ticktext
    assert "not finite first in gradient/bad at step 0" in figure.layout.meta["tdbg"]["caption"]


@pytest.mark.parametrize("colour", ["log", "linear"])
@pytest.mark.parametrize("statistic", ["l2", "mean"])
@pytest.mark.parametrize("value", [1e17, 1e308, -1.7e308])
def test_overview_of_one_huge_value_has_a_scale(tmp_path, value, statistic, colour):
    handle = tdbg.attach(nn.Linear(1, 1), store=tmp_path / "run", profiler=False, rules="none")
    handle.record("huge", np.full(3, value))
    handle.detach()
    run = tdbg.open_run(tmp_path / "run")
    heat = call_view(run, "overview", {"statistic": statistic, "colour": colour}).data[0]
    assert heat.z[0][0] >= 9
    assert len(heat.colorbar.tickvals)


def test_overview_of_a_long_run_never_drops_a_nan(long):
    heat = call_view(long, "overview", {"n_out": 30}).data[0]
    assert len(heat.x) == 30
    assert set(np.diff(heat.x)) == {334}
    assert heat.x[-1] == 9999
    bad = np.flatnonzero(np.asarray(heat.z)[0] == 9)
    assert len(bad) == 1
    assert heat.x[bad[0] - 1] < 4321 <= heat.x[bad[0]]


def test_overview_filters_by_pattern(plain):
    heat = call_view(plain, "overview", {"kind": "weight", "regex": "layer[13]"}).data[0]
    assert list(heat.y) == ["layer1.weight", "layer3.weight"]
