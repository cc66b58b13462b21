"""What a figure looks like on the wire."""

from __future__ import annotations

import json

import numpy as np
import pytest
from plotly import graph_objects as go

from tdbg_lab.views import figure_json


def wire(**trace):
    return json.loads(figure_json(go.Figure([{"type": "scatter", **trace}], _validate=False)))["data"][0]


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.0, np.nan, -np.inf]),
        np.array([1.5, np.nan], np.float32),
        np.arange(3),
        np.array([-40_000, 40_000]),
        np.array([2**40, 1]),
        np.array([], np.int64),
        np.array([True, False]),
        np.arange(6, dtype=np.uint16).reshape(2, 3),
        np.arange(12.0).reshape(3, 4).T,
        np.array(["a", None, "b"], object),
        np.array(["2026-01-01", "2026-01-02"], "datetime64[D]"),
    ],
    ids=lambda values: f"{values.dtype} {values.shape}",
)
def test_arrays_are_encoded_as_plotly_does_it(values):
    figure = go.Figure([{"type": "scatter", "x": values, "marker": {"size": values}}], _validate=False)
    assert json.loads(figure_json(figure)) == json.loads(figure.to_json(validate=False))


def test_numbers_travel_as_typed_arrays_in_the_smallest_type_that_holds_them():
    assert wire(x=np.array([0, 300])) == {"type": "scatter", "x": {"dtype": "i2", "bdata": "AAAsAQ=="}}
    assert wire(z=np.zeros((2, 3), np.float32))["z"]["shape"] == "2, 3"


def test_ranges_stay_lists():
    figure = go.Figure(layout={"xaxis": {"range": np.array([0.0, 1.0])}})
    assert json.loads(figure_json(figure))["layout"]["xaxis"]["range"] == [0.0, 1.0]
