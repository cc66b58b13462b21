"""Pictures of several runs in a notebook."""

from __future__ import annotations

from pathlib import Path

import pytest

from tdbg_lab.notebook.live import LiveView
from tdbg_lab.run import open_run
from tdbg_lab.testing import FakeTraining, fake_run


@pytest.mark.parametrize(("view", "name", "several"), [("runs", "others", True), ("compare", "other", False)])
def test_picture_follows_the_other_run_beside_one_that_has_ended(tmp_path, view, name, several):
    training = FakeTraining(tmp_path / "live", layers=1)
    training.step()
    ended, other = open_run(fake_run(tmp_path / "ended", steps=3, layers=1)), open_run(training.path)
    live = LiveView(ended, view, {name: [other] if several else other})
    live.start()
    assert live.alive
    assert live.refresh() or live.drawings
    live.close()
    before, zoom = live.drawings, live._picture.figure["layout"]["uirevision"]
    training.step()
    assert live.refresh()
    assert not live.refresh()
    assert live.drawings == before + 1
    assert live._picture.figure["layout"]["uirevision"] == zoom  # kept
    training.end()


def test_magic_names_several_runs(shell, monkeypatch):
    shown = []
    monkeypatch.setattr(
        "tdbg_lab.notebook.showing.show", lambda *given, **params: shown.append((given, params))
    )
    for name in ("one", "two", "three"):
        fake_run(Path("runs") / name, steps=3, layers=1)
    shell.run_cell("%tdbg show runs --run runs/one --others runs/two,runs/three")
    ((run, view), params) = shown[0]
    assert (Path(run).name, view) == ("one", "runs")
    assert [Path(each).name for each in params["others"]] == ["two", "three"]
