from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch import nn

from tdbg_lab import attach, open_run
from tdbg_lab.analysis.value_axis import ValueAxis, rebin
from tdbg_lab.views import call_view


def _traces(figure, name):
    return [trace for trace in figure.data if trace.name == name]


@pytest.mark.parametrize("scale", ["signed_log", "linear"])
@pytest.mark.parametrize("tensor", ["activation/layer3", "layer0.weight", "gradient/layer1.weight"])
def test_histogram_columns_hold_every_finite_element(plain, tensor, scale):
    figure = call_view(plain, "histogram", {"tensor": tensor, "scale": scale})
    heat = figure.data[0]
    assert list(heat.x) == list(plain.tensor(tensor).steps())
    np.testing.assert_allclose(np.nansum(np.asarray(heat.z, dtype=float), axis=0), 100, rtol=1e-4)


def test_histogram_writes_small_values_without_a_prefix_of_units(plain):
    figure = call_view(plain, "histogram", {"tensor": "gradient/layer1.weight", "scale": "linear"})
    assert figure.layout.yaxis.exponentformat == "e"


@pytest.mark.parametrize("view", ["histogram", "slices", "distribution"])
def test_views_over_values_say_where_their_numbers_stand(plain, view):
    figure = call_view(plain, view, {"tensor": "layer1.weight"})
    told = [trace.meta["table"] for trace in figure.data if trace.yaxis != "y2"]
    assert all(set(table.values()) & {"customdata", "customdata.0", True} for table in told)
    if view == "histogram":
        assert [table["name"] for table in told if "name" in table][:2] == ["min", "5% quantile"]


def test_histogram_quantile_lines_rise_with_the_quantile(plain):
    figure = call_view(plain, "histogram", {"tensor": "layer1.weight"})
    lines = [trace for trace in figure.data if trace.customdata is not None and trace.type == "scatter"]
    values = np.array([trace.customdata for trace in lines if trace.yaxis != "y2"], dtype=float)
    assert values.shape[0] == 7
    assert (np.diff(values, axis=0) >= 0).all()
    stats = plain.stats("layer1.weight", ["min", "max", "q50"], mode="train")
    np.testing.assert_allclose(values[0], stats["min"])
    np.testing.assert_allclose(values[-1], stats["max"])
    off = np.abs(values[3] - stats["q50"])
    assert (off <= 0.25 * np.abs(stats["q50"]) + 1e-6).mean() > 0.9


def test_histogram_notes_shares_of_zero_nan_and_infinities(broken):
    figure = call_view(broken, "histogram", {"tensor": "gradient/bad"})
    (nan,), (inf,) = _traces(figure, "NaN"), _traces(figure, "inf")
    np.testing.assert_allclose(nan.y, np.arange(12) * 10 / 200)
    np.testing.assert_allclose(inf.y, 1 / 200)
    assert not _traces(figure, "zero")
    assert "NaN" in figure.layout.meta["tdbg"]["caption"]


def test_histogram_of_zeros_only_fills_the_row_of_zero(broken):
    figure = call_view(broken, "histogram", {"tensor": "gradient/zero"})
    z, y = np.asarray(figure.data[0].z, dtype=float), np.asarray(figure.data[0].y)
    row = int(np.nanargmax(z[:, 0]))
    assert abs(y[row]) < 1e-9
    assert z[row, 0] == pytest.approx(100)
    assert np.nansum(z[:, 0]) == pytest.approx(100)
    lines = [trace for trace in figure.data if trace.legendgroup]
    assert lines
    assert all(np.isnan(trace.y).all() for trace in lines)


def test_histogram_without_a_choice_takes_a_layer_with_weights(tmp_path):
    model = nn.Sequential(OrderedDict(enlarge=nn.Upsample(scale_factor=2), dense=nn.Linear(8, 3)))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with attach(model, optimizer=optimizer, store=tmp_path / "run", profiler=False) as handle:
        model(torch.ones(2, 4, 4)).sum().backward()
        optimizer.step()
    figure = call_view(open_run(handle.run_path), "histogram")
    assert figure.layout.meta["tdbg"]["caption"].startswith("activation/dense ")


def test_histogram_merges_ranks_unless_asked_for_one(ranks):
    both = call_view(ranks, "histogram").layout.meta["tdbg"]["caption"]
    one = call_view(ranks, "histogram", {"rank": 1}).layout.meta["tdbg"]["caption"]
    assert "200 elements" in both
    assert "100 elements" in one


def test_histogram_of_a_long_run_has_equal_columns_up_to_the_last_step_and_keeps_the_nan(long):
    figure = call_view(long, "histogram", {"tensor": "gradient/w", "n_out": 90})
    heat = figure.data[0]
    assert heat.x[0] == 127
    assert set(np.diff(heat.x[:-1])) == {128}
    assert heat.x[-1] == 9999
    assert len(heat.x) <= 90
    np.testing.assert_allclose(np.nansum(np.asarray(heat.z, dtype=float), axis=0), 100, rtol=1e-4)
    assert np.max(_traces(figure, "NaN")[0].y) > 0


def test_histogram_in_a_range_of_steps_shows_only_those(plain):
    figure = call_view(plain, "histogram", {"tensor": "layer0.weight", "steps": [10, 20]})
    assert list(figure.data[0].x) == list(range(10, 21))


def test_slices_highlight_the_saved_step_at_or_before_the_shared_one(plain):
    figure = call_view(plain, "slices", {"tensor": "activation/layer0", "mode": "eval", "step": 27})
    assert figure.layout.meta["tdbg"]["step"] == 20
    assert any(trace.name == "step 20" for trace in figure.data)


@pytest.mark.parametrize("style", ["ridge", "overlay"])
def test_slices_hold_every_finite_element(plain, style):
    figure = call_view(plain, "slices", {"tensor": "layer0.weight", "style": style, "at": [0, 5, 39]})
    curves = [trace for trace in figure.data if trace.hovertemplate]
    assert {trace.name for trace in curves} == {"step 0", "step 5", "step 39"}
    for curve in curves:
        share = np.asarray(curve.customdata)[:, 1] if style == "ridge" else np.asarray(curve.y)
        assert share.sum() == pytest.approx(1)


def test_distribution_rises_to_one(plain):
    figure = call_view(plain, "distribution", {"tensor": "layer0.weight"})
    assert [trace.name for trace in figure.data] == ["step 0", "step 20", "step 39"]
    for trace in figure.data:
        assert (np.diff(trace.y) >= -1e-12).all()
        assert trace.y[-1] == pytest.approx(1)


def test_axis_of_histogram_has_zero_among_its_ticks(plain):
    block = plain.tensor("layer0.weight").histograms().block
    axis = ValueAxis.fit(block, "signed_log")
    positions, values = axis.ticks()
    assert 0.0 in values
    np.testing.assert_allclose(axis.forward(values), positions)
    assert rebin(block, axis, axis.edges(50)).shape[0] == len(block)
