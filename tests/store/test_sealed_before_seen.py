from __future__ import annotations

from tdbg_lab.run import open_run
from tdbg_lab.store import state
from tdbg_lab.testing.fake import FakeTraining


def test_rows_that_are_sealed_before_they_were_seen_are_a_change(tmp_path):
    training = FakeTraining(tmp_path / "run", layers=1)
    training.step()
    run = open_run(training.path)
    assert run.last_step == 0
    training.step()
    training.end("running")  # closes and seals what is open, and leaves run.json as it is
    assert list(training.path.glob("rank-*/stats-*.parquet"))
    assert run.refresh()
    assert run.last_step == 1
    assert not run.refresh()


def test_rows_that_are_sealed_between_listing_and_opening_are_read_at_once(tmp_path, monkeypatch):
    training = FakeTraining(tmp_path / "run", layers=1)
    training.step()
    listing = state.list_segments

    def listed_then_sealed(directory):
        found = listing(directory)
        monkeypatch.setattr(state, "list_segments", listing)
        training.end("running")
        return found

    monkeypatch.setattr(state, "list_segments", listed_then_sealed)
    assert open_run(training.path).last_step == 0
