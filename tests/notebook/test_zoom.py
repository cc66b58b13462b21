"""What a picture in a notebook keeps of its zoom."""

from __future__ import annotations

import pytest

from tdbg_lab.notebook.live import LiveView
from tdbg_lab.run import open_run
from tdbg_lab.testing import FakeTraining, fake_run


def test_range_to_the_end_keeps_the_zoom_while_the_run_goes_on(tmp_path):
    training = FakeTraining(tmp_path / "run", layers=1)
    for _ in range(6):
        training.step()
    live = LiveView(open_run(training.path), "scalars", {"steps": [2, None]})
    live.refresh()
    before = live._picture.figure["layout"]["uirevision"]
    training.step()
    assert live.refresh()
    assert live._picture.figure["layout"]["uirevision"] == before
    live.close()
    training.end()


@pytest.fixture
def zoom_after(tmp_path):
    """What tells Plotly whether to keep the zoom, after a choice in the bar of a picture."""
    live = LiveView(open_run(fake_run(tmp_path / "run", steps=6, layers=2)), "distribution", {})
    live.refresh()

    def choose(name, value):
        live._controls._parts[name].value = value
        return live._picture.figure["layout"]["uirevision"]

    yield choose
    live.close()


def test_another_step_keeps_the_zoom(zoom_after):
    assert zoom_after("step", 2) == zoom_after("step", 4)


def test_another_tensor_begins_anew(zoom_after):
    assert zoom_after("tensor", "layer0.weight") != zoom_after("tensor", "layer1.weight")
