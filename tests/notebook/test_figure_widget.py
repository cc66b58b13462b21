from __future__ import annotations

import json

import plotly
from ipywidgets import Widget
from plotly.basewidget import BaseFigureWidget

from tdbg_lab.notebook.figure_widget import FigureWidget

SHOWN = {"data": [{"type": "scatter", "x": [0, 1], "y": [2, 3]}], "layout": {}}


def test_state_of_a_widget_is_small_and_names_the_version_of_plotly():
    widget = FigureWidget(SHOWN)
    state = widget.get_state()
    assert plotly.__version__ in state["_esm"]
    assert "__VERSION__" not in state["_esm"]
    assert len(json.dumps(state, default=repr)) < 20_000
    widget.close()


def test_plotlys_own_code_is_where_it_is_read_from():
    assert "package_data" in str(BaseFigureWidget.__dict__["_esm"]._path)


def test_kernel_answers_a_browser_that_found_no_server(monkeypatch):
    sent = []
    monkeypatch.setattr(
        FigureWidget, "send", lambda _, content, buffers=None: sent.append((content, buffers))
    )
    widget = FigureWidget(SHOWN)
    widget._handle_custom_msg({"tdbg": "widget-code"}, [])
    widget._handle_custom_msg({"tdbg": "something else"}, [])
    widget._handle_custom_msg("widget-code", [])
    [(content, [code])] = sent
    assert content == {"tdbg": "widget-code"}
    assert b"export" in code[-20_000:]
    assert widget.model_id in set(Widget.widgets)
    widget.close()


def test_widget_offers_no_upload():
    widget = FigureWidget(SHOWN)
    assert widget.get_state()["_config"] == {"showSendToCloud": False}
    widget.close()
