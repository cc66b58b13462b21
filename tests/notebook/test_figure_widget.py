from __future__ import annotations

import base64
import json

import numpy as np
import plotly
import plotly.graph_objects as go
import pytest

from tdbg_lab.notebook.figure_widget import FigureWidget
from tdbg_lab.notebook.still import PLOTLY_MIME, still


@pytest.fixture
def widget():
    widget = FigureWidget()
    yield widget
    widget.close()


def _heat(width, **layout):
    return go.Figure(go.Heatmap(z=np.arange(3.0 * width).reshape(3, width)), layout=layout)


def test_widget_names_the_version_of_plotly_and_does_not_carry_it(widget):
    state = widget.get_state()
    assert plotly.__version__ in state["_esm"]
    assert "__VERSION__" not in state["_esm"]
    assert len(json.dumps(state, default=repr)) < 20_000


def test_widget_begins_empty(widget):
    assert widget.figure == {"data": [], "layout": {}}


def test_draw_makes_the_state_equal_to_the_figure(widget):
    """Whoever draws late, or again, draws from the state."""
    for figure in (_heat(2, title={"text": "a"}), go.Figure([go.Scatter(y=[1]), go.Bar(y=[3])]), _heat(5)):
        widget.draw(figure)
        assert widget.get_state()["figure"] == json.loads(figure.to_json())


def test_draw_sends_arrays_as_base64(widget):
    widget.draw(_heat(400))
    sent = widget.get_state()["figure"]["data"][0]["z"]
    values = np.frombuffer(base64.b64decode(sent["bdata"]), sent["dtype"]).reshape(3, 400)
    np.testing.assert_array_equal(values, np.arange(1200.0).reshape(3, 400))


def test_draw_sends_nothing_when_nothing_changed(widget):
    sent = []
    widget.draw(_heat(4))
    widget.observe(sent.append, names="figure")
    widget.draw(_heat(4))
    assert sent == []
    widget.draw(_heat(5))
    assert len(sent) == 1


def test_kernel_answers_a_browser_that_found_no_server(widget, monkeypatch):
    sent = []
    monkeypatch.setattr(
        FigureWidget, "send", lambda _, content, buffers=None: sent.append((content, buffers))
    )
    widget._handle_custom_msg({"tdbg": "plotly"}, [])
    widget._handle_custom_msg({"tdbg": "something else"}, [])
    widget._handle_custom_msg("plotly", [])
    [(content, [code])] = sent
    assert content == {"tdbg": "plotly"}
    assert b"plotly.js v" in code[:200]
    assert b"module.exports" in code[:1_000]  # how figure.js takes it


def test_still_is_drawn_without_a_kernel_and_without_us():
    bundle = still(_heat(3).to_plotly_json(), text="Histogram of run a")
    assert bundle[PLOTLY_MIME]["data"][0]["type"] == "heatmap"
    assert "plotly" in bundle["text/html"]
    assert bundle["text/plain"] == "Histogram of run a"
