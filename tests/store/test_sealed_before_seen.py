from __future__ import annotations

from tdbg_lab.run import open_run
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
