"""The picture that stays in a saved notebook."""

from __future__ import annotations

import json
from importlib.metadata import files

import pytest

from tdbg_lab.notebook.still import PLOTLY_MIME, still

SHOWN = {"data": [{"type": "scatter", "y": [1, 2]}], "layout": {"title": {"text": "loss"}}}


def test_it_is_plotly_json_with_a_page_and_words_for_those_that_draw_none():
    bundle = still(SHOWN, text="loss is 2")
    assert bundle[PLOTLY_MIME]["data"] == SHOWN["data"]
    assert "<div" in bundle["text/html"]
    assert bundle["text/plain"] == "loss is 2"


@pytest.mark.parametrize(("title", "free"), [("", 8), ("layer0.weight", 32)])
def test_its_legend_hangs_from_the_top_while_its_height_is_not_known(title, free):
    legend = {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"}
    layout = {"height": 400, "legend": legend, "title": {"text": title}}
    drawn = still({"data": [], "layout": layout})[PLOTLY_MIME]["layout"]["legend"]
    hung = {"yref": "container", "yanchor": "top", "y": pytest.approx(1 - free / 400)}
    assert drawn == legend | hung


def test_plotly_brings_the_lab_extension_that_draws_it():
    (found,) = [
        one for one in files("plotly") or () if one.match("labextensions/jupyterlab-plotly/package.json")
    ]
    facts = json.loads(found.locate().read_text(encoding="utf-8"))
    assert facts["jupyterlab"]["mimeExtension"]
