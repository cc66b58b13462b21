from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from plotly import graph_objects as go
from plotly import io as pio

from tdbg_lab.records import RunStatus
from tdbg_lab.run import open_run
from tdbg_lab.store import create_run
from tdbg_lab.views import call_view, figure_json, list_views
from tdbg_lab.views.style import caption_of

NAMES = (
    "scalars",
    "histogram",
    "slices",
    "statistics",
    "overview",
    "distribution",
    "latent",
    "timeline",
    "rules",
    "rule_timeline",
    "step_times",
    "phases",
    "data_loading",
    "cores",
    "utilisation",
    "bottlenecks",
    "ranks",
    "compare",
    "runs",
    "operators",
    "flame",
)
RUNS = ("nothing", "one_step", "plain", "broken", "ranks", "hostile")


def test_list_views_names_the_built_in_views_first():
    assert tuple(view.name for view in list_views())[: len(NAMES)] == NAMES


@pytest.mark.parametrize("run_name", RUNS)
@pytest.mark.parametrize("name", NAMES)
def test_view_draws_and_describes_itself_on_any_run(name, run_name, request):
    run = request.getfixturevalue(run_name)
    figure = call_view(run, name)
    facts = figure.layout.meta["tdbg"]
    assert facts["view"] == name
    assert len(facts["caption"]) > 10
    assert figure.layout.uirevision
    assert len(figure.data) or figure.layout.annotations
    go.Figure(figure.to_dict())  # plotly knows every property and accepts every value


@pytest.mark.parametrize("name", NAMES)
def test_view_survives_the_way_through_json(name, plain):
    figure = call_view(plain, name)
    text = figure_json(figure)
    again = json.loads(text)
    assert again["layout"]["meta"]["tdbg"]["view"] == name
    assert len(again["data"]) == len(figure.data)
    for before, after in zip(figure.data, again["data"], strict=True):
        if "x" in after:
            np.testing.assert_array_equal(np.asarray(before.x), _array(after["x"]))
    assert json.loads(figure_json(pio.from_json(text))) == again


@pytest.mark.parametrize("name", ["scalars", "histogram", "statistics", "overview", "latent"])
def test_view_sends_numbers_as_typed_arrays(name, plain):
    assert '"bdata"' in figure_json(call_view(plain, name))


@pytest.mark.parametrize("name", NAMES)
def test_view_leaves_page_and_font_colours_to_the_host(name, plain):
    layout = json.loads(figure_json(call_view(plain, name)))["layout"]
    for part in (layout, layout["template"]["layout"]):
        assert "paper_bgcolor" not in part
        assert "plot_bgcolor" not in part
        assert "color" not in part.get("font", {})
        assert "color" not in part.get("title", {}).get("font", {})


@pytest.mark.parametrize("name", NAMES)
def test_view_on_an_empty_run_says_what_to_do(name, nothing):
    figure = call_view(nothing, name)
    assert not figure.data
    assert len(figure.layout.annotations[0].text) > 20


@pytest.mark.parametrize("name", ["scalars", "histogram", "slices", "statistics", "overview", "distribution"])
def test_view_on_a_run_that_ended_without_data_promises_none(name, tmp_path):
    folder = create_run(tmp_path / "ended")
    folder.set_status(RunStatus.FINISHED)
    assert caption_of(call_view(open_run(folder.path), name)).startswith(
        "Nothing was recorded. The run ended"
    )


@pytest.mark.parametrize("name", ["scalars", "statistics", "overview"])
def test_view_says_that_no_name_matches_its_pattern(name, plain):
    caption = caption_of(call_view(plain, name, {"regex": "<b>nosuch"}))
    assert "match the name pattern <b>nosuch." in caption
    assert "attach" not in caption


@pytest.mark.parametrize("name", NAMES)
def test_view_is_deterministic(name, plain):
    assert figure_json(call_view(plain, name)) == figure_json(call_view(plain, name))


@pytest.mark.parametrize("name", ["scalars", "histogram", "slices", "statistics", "overview", "distribution"])
def test_view_draws_at_most_what_was_asked_of_a_long_run(name, long):
    view = next(view for view in list_views() if view.name == name)
    params = {"n_out": 50} if any(param.name == "n_out" for param in view.params) else {}
    figure = call_view(long, name, params)
    widest = max(len(trace.x) for trace in figure.data)
    assert widest <= (60 if params else 250)
    assert len(figure_json(figure)) < 400_000


@pytest.mark.parametrize("name", NAMES)
def test_view_escapes_hostile_names_everywhere(name, hostile):
    text = figure_json(call_view(hostile, name))
    strings = [value for value in _strings(json.loads(text)) if value]
    for value in strings:
        assert "<img" not in value
        assert "<script" not in value
        assert "%{z}</b>" not in value
        assert "\u202e" not in value


@pytest.mark.parametrize("name", NAMES)
def test_view_keeps_zoom_while_only_the_step_moves(name, plain):
    if any(param.name == "step" for param in next(v for v in list_views() if v.name == name).params):
        still, moved = call_view(plain, name), call_view(plain, name, {"step": 10})
        assert still.layout.uirevision == moved.layout.uirevision


def test_user_view_gets_meta_and_axis_without_asking(plain):
    from tdbg_lab.views import view

    @view("test_user_view", title="Mine", axis="step")
    def mine(run, *, tensor=None):
        """Shows nothing much."""
        return go.Figure(go.Scatter(x=[0, 1], y=[run.last_step, 2]))

    figure = call_view(plain, "test_user_view")
    assert figure.layout.meta["tdbg"] == {
        "view": "test_user_view",
        "axis": "step",
        "x_axes": ["x"],
        "caption": "Shows nothing much.",
        "step": None,
    }


def _array(value):
    if isinstance(value, list):
        return np.asarray(value)
    return np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])


def _strings(value, key=""):
    """All texts a browser would render; `uirevision` and captions are not rendered as HTML by plotly."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name not in {"uirevision", "meta", "bdata"}:
                yield from _strings(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each, key)
    elif isinstance(value, str):
        yield value
