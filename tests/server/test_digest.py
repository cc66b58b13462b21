from __future__ import annotations

import time

import numpy as np

from tdbg_lab.run import open_run
from tdbg_lab.server.digest import LOSS_AGE_S, LOSS_POINTS, digest, thin
from tdbg_lab.testing import fake_run
from tdbg_lab.testing.fake import FakeTraining


def test_thinning_keeps_ends_and_what_is_not_finite():
    steps = np.arange(10_000)
    values = np.sin(steps / 100)
    values[[17, 5_003]] = np.nan, np.inf
    chosen, shown = thin(steps, values, LOSS_POINTS)
    assert len(chosen) <= LOSS_POINTS
    assert {0, 17, 5_003, 9_999} <= set(chosen.tolist())
    assert np.all(np.diff(chosen) > 0)
    np.testing.assert_array_equal(shown, values[chosen])


def test_short_series_stays_as_it_is():
    steps = np.arange(5)
    assert thin(steps, steps.astype(float), 64)[0] is steps


def test_digest_of_an_empty_run_is_empty(tmp_path):
    found = digest(open_run(fake_run(tmp_path / "run", steps=0, findings=False)))
    assert (found.last_step, found.loss, found.steps_per_second) == (-1, None, None)


def test_loss_is_read_again_also_after_the_clock_was_set_back(tmp_path, monkeypatch):
    training = FakeTraining(tmp_path / "run")
    training.step()
    run = open_run(training.path)
    before = digest(run)
    training.step()
    run.refresh()
    now_ns, now_s = time.time_ns(), time.monotonic()
    monkeypatch.setattr("tdbg_lab.server.digest.time.time_ns", lambda: now_ns - 3600 * 10**9)
    monkeypatch.setattr("tdbg_lab.server.digest.time.monotonic", lambda: now_s + 2 * LOSS_AGE_S)
    after = digest(run, before)
    monkeypatch.undo()
    training.end()
    assert [step for step, _ in after.loss] == [0, 1]


def test_digest_counts_steps_and_findings(tmp_path):
    found = digest(open_run(fake_run(tmp_path / "run", steps=100)))
    assert found.last_step == 99
    assert found.findings == (0, 1, 0)
    assert found.steps_per_second is not None
    assert abs(found.steps_per_second - 20) < 0.1
    assert found.loss is not None
    assert len(found.loss) == 64
