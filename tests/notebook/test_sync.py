from __future__ import annotations

import base64

import numpy as np
import plotly.graph_objects as go
import pytest

from tdbg_lab.notebook.still import PLOTLY_MIME, still
from tdbg_lab.notebook.sync import Screen


@pytest.fixture
def sent():
    """Names of the messages a figure widget sends, in order."""
    return []


@pytest.fixture
def widget(sent):
    widget = go.FigureWidget()
    widget.observe(lambda change: sent.append(change["name"]) if change["new"] is not None else None)
    return widget


@pytest.fixture
def screen(widget):
    return Screen(widget)


def _values(array):
    """Plotly's base64 form as a numpy array."""
    shape = [int(n) for n in str(array.get("shape", "-1")).split(",")]
    return np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"]).reshape(shape)


def _heat(width, **layout):
    return go.Figure(
        go.Heatmap(z=np.arange(3.0 * width).reshape(3, width), colorscale="Viridis"), layout=layout
    )


def test_draw_makes_the_widget_equal_to_the_figure(screen, widget):
    for figure in (_heat(2, title={"text": "a"}), _heat(5, title={"text": "b"}, height=300), _heat(5)):
        screen.draw(figure)
        np.testing.assert_array_equal(_values(widget.data[0].z), figure.data[0].z)
        shown = {key: value for key, value in widget.layout.to_plotly_json().items() if value != {}}
        assert shown == figure.layout.to_plotly_json()


def test_draw_updates_a_trace_of_the_same_type_where_it_stands(screen, widget, sent):
    screen.draw(_heat(2))
    trace, sent[:] = widget.data[0], []
    screen.draw(_heat(4))
    assert widget.data[0] is trace
    assert [name for name in sent if name.startswith("_py2js")] == ["_py2js_update"]


def test_draw_sends_nothing_when_nothing_changed(screen, sent):
    screen.draw(_heat(4))
    sent.clear()
    screen.draw(_heat(4))
    assert [name for name in sent if name.startswith("_py2js")] == []


def test_draw_replaces_traces_of_other_types(screen, widget):
    screen.draw(_heat(2))
    screen.draw(go.Figure([go.Scatter(y=[1, 2]), go.Bar(y=[3])]))
    assert [trace.type for trace in widget.data] == ["scatter", "bar"]
    screen.draw(go.Figure())
    assert widget.data == ()


def test_draw_removes_what_the_new_figure_does_not_have(screen, widget):
    screen.draw(
        go.Figure(
            go.Scatter(y=[1, 2], text=["a", "b"], line={"dash": "dot"}),
            layout={"annotations": [{"text": "x"}]},
        ),
    )
    screen.draw(go.Figure(go.Scatter(y=[1, 2])))
    assert widget.data[0].text is None
    assert widget.data[0].line.dash is None
    assert widget.layout.annotations == ()


def test_remember_gives_a_reloaded_page_the_picture_as_it_is(screen, widget):
    screen.draw(_heat(2))
    screen.draw(_heat(4, title={"text": "now"}))
    screen.remember()
    state = widget.get_state()
    assert _values(state["_widget_data"][0]["z"]).shape == (3, 4)
    assert state["_widget_layout"]["title"]["text"] == "now"


def test_still_is_drawn_without_a_kernel_and_without_us():
    bundle = still(_heat(3).to_plotly_json(), text="Histogram of run a")
    assert bundle[PLOTLY_MIME]["data"][0]["type"] == "heatmap"
    assert "plotly" in bundle["text/html"]
    assert bundle["text/plain"] == "Histogram of run a"
