from __future__ import annotations

import base64
from copy import deepcopy

import numpy as np
import plotly.graph_objects as go
import pytest
from ipywidgets import Widget

from tdbg_lab.notebook.still import PLOTLY_MIME, still
from tdbg_lab.notebook.sync import Screen


@pytest.fixture
def screen():
    screen = Screen()
    yield screen
    screen.close()


@pytest.fixture
def sent(screen):
    """What the widget on the screen sends from now on: `sent()` begins, and gives the list."""

    def begin():
        messages = []
        screen.widget.observe(
            lambda change: (
                messages.append((change["name"], change["new"]))
                if change["name"].startswith("_py2js") and change["new"] is not None
                else None
            )
        )
        return messages

    return begin


def _values(array):
    """Plotly's base64 form as a numpy array."""
    shape = [int(n) for n in str(array.get("shape", "-1")).split(",")]
    return np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"]).reshape(shape)


def _heat(width, **layout):
    return go.Figure(
        go.Heatmap(z=np.arange(3.0 * width).reshape(3, width), colorscale="Viridis"), layout=layout
    )


def test_draw_makes_the_widget_equal_to_the_figure(screen):
    for figure in (_heat(2, title={"text": "a"}), _heat(5, title={"text": "b"}, height=300), _heat(5)):
        screen.draw(figure)
        np.testing.assert_array_equal(_values(screen.widget.data[0].z), figure.data[0].z)
        shown = {key: value for key, value in screen.widget.layout.to_plotly_json().items() if value != {}}
        assert shown == figure.layout.to_plotly_json()


def test_draw_updates_traces_of_the_same_types_where_they_stand(screen, sent):
    screen.draw(_heat(2))
    widget, messages = screen.widget, sent()
    screen.draw(_heat(4))
    assert screen.widget is widget
    assert [name for name, _ in messages] == ["_py2js_update"]
    assert list(messages[0][1]["style_data"]) == ["z"]


def test_draw_sends_nothing_when_nothing_changed(screen, sent):
    screen.draw(_heat(4))
    messages = sent()
    screen.draw(_heat(4))
    assert messages == []


def test_draw_begins_a_complete_widget_for_a_figure_of_another_structure(screen):
    """A browser that still loads would miss a message about a new trace."""
    screen.draw(_heat(2))
    first = screen.widget
    screen.draw(go.Figure([go.Scatter(y=[1, 2]), go.Bar(y=[3])], layout={"title": {"text": "two"}}))
    assert screen.box.children == (screen.widget,)
    assert first.comm is None
    state = screen.widget.get_state()
    assert [trace["type"] for trace in state["_widget_data"]] == ["scatter", "bar"]
    assert state["_widget_layout"]["title"]["text"] == "two"


def test_draw_announces_a_widget_with_its_figure(screen, monkeypatch):
    """A browser that draws between an empty announcement and the figure shows empty axes for good."""
    announced = []
    really = Widget.open
    monkeypatch.setattr(Widget, "open", lambda widget: (announced.append(widget.get_state()), really(widget)))
    screen.draw(_heat(4, title={"text": "now"}))
    state = next(each for each in announced if "_widget_data" in each)
    assert _values(state["_widget_data"][0]["z"]).shape == (3, 4)
    assert state["_widget_layout"]["title"]["text"] == "now"


def test_draw_clears_the_screen_for_a_figure_without_traces(screen):
    screen.draw(go.Figure())
    assert screen.box.children == ()
    screen.draw(_heat(2))
    screen.draw(go.Figure())
    assert screen.box.children == ()


def test_draw_begins_anew_after_an_update_that_failed_half_way(screen, monkeypatch):
    screen.draw(_heat(2))
    monkeypatch.setattr(go.FigureWidget, "batch_update", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        screen.draw(_heat(3))
    assert _values(screen.widget.data[0].z).shape == (3, 3)


def test_screen_sends_everything_once_more_when_the_browser_has_first_drawn(screen, sent):
    screen.draw(_heat(2))
    screen.draw(_heat(4, title={"text": "now"}))
    messages = sent()
    screen.widget._js2py_traceDeltas = {"trace_deltas": [], "trace_edit_id": 0}
    assert [name for name, _ in messages] == ["_py2js_restyle", "_py2js_relayout"]
    assert _values(messages[0][1]["restyle_data"]["z"][0]).shape == (3, 4)
    assert messages[1][1]["relayout_data"]["title"]["text"] == "now"
    screen.widget._js2py_traceDeltas = {"trace_deltas": [], "trace_edit_id": 9}
    assert len(messages) == 2


def test_draw_removes_what_the_new_figure_does_not_have(screen):
    screen.draw(
        go.Figure(
            go.Scatter(y=[1, 2], text=["a", "b"], line={"dash": "dot"}),
            layout={"annotations": [{"text": "x"}]},
        ),
    )
    screen.draw(go.Figure(go.Scatter(y=[1, 2])))
    assert screen.widget.data[0].text is None
    assert screen.widget.data[0].line.dash is None
    assert screen.widget.layout.annotations == ()


def test_settle_begins_a_complete_widget_unless_the_browser_has_drawn_this_one(screen):
    screen.draw(_heat(2))
    unseen = screen.widget
    screen.settle()
    seen = screen.widget
    assert seen is not unseen
    seen._js2py_traceDeltas = {"trace_deltas": [], "trace_edit_id": 0}
    screen.settle()
    assert screen.widget is seen


def test_remember_gives_a_reloaded_page_the_picture_as_it_is(screen):
    screen.draw(_heat(2))
    screen.draw(_heat(4, title={"text": "now"}))
    screen.remember()
    state = screen.widget.get_state()
    assert _values(state["_widget_data"][0]["z"]).shape == (3, 4)
    assert state["_widget_layout"]["title"]["text"] == "now"


def test_draw_gives_a_view_that_is_made_later_the_picture_as_it_is(screen):
    """A cell that was scrolled away, or that loads slowly, is drawn from the synchronised state."""
    screen.draw(_heat(2))
    screen.draw(_heat(4, title={"text": "now"}))
    state = screen.widget.get_state()
    assert _values(state["_widget_data"][0]["z"]).shape == (3, 4)
    assert state["_widget_data"][0]["uid"] == screen.widget.data[0].uid
    assert state["_widget_layout"]["title"]["text"] == "now"


def test_browser_that_reports_data_as_its_own_does_not_empty_the_picture(screen):
    screen.draw(_heat(2))
    screen.draw(_heat(4))
    widget = screen.widget
    delta = {"uid": widget.data[0].uid, **deepcopy(screen.shown["data"][0])}
    widget._js2py_traceDeltas = {"trace_deltas": [delta], "trace_edit_id": widget._last_trace_edit_id}
    assert "z" not in widget.data[0].to_plotly_json()  # plotly counts it among the defaults now
    screen.remember()
    assert _values(widget.get_state()["_widget_data"][0]["z"]).shape == (3, 4)


def test_still_is_drawn_without_a_kernel_and_without_us():
    bundle = still(_heat(3).to_plotly_json(), text="Histogram of run a")
    assert bundle[PLOTLY_MIME]["data"][0]["type"] == "heatmap"
    assert "plotly" in bundle["text/html"]
    assert bundle["text/plain"] == "Histogram of run a"
