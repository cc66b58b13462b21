"""Segments that have ended and are not sealed yet: what was written stays to be read at each moment."""

from __future__ import annotations

import threading

import numpy as np

from store.rows import KEYS, rows
from tdbg_lab.records import Mode
from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, create_run, stream

LOSS = KEYS[2]


def test_histograms_are_read_where_numbers_of_several_steps_were_written_together(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path, seal=False)
    writer.append(rows(0))
    run = open_run(path)
    writer.append_scalars([1, 2, 3], [1, 2, 3], (LOSS,) * 3, [0.3, 0.2, 0.1], mode=Mode.TRAIN)
    writer.append(rows(4))
    writer.close()
    run.refresh()
    assert run.tensor("a.weight").histograms().steps.tolist() == [0, 4]
    assert run.problems == []


def test_nothing_that_was_read_once_is_missing_later(tmp_path, monkeypatch):
    monkeypatch.setitem(stream.SEGMENT_BATCHES, "stats", 5)
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)

    def train():
        for step in range(0, 600, 2):
            writer.append(rows(step))
            pair = [step, step + 1]
            writer.append_scalars(pair, pair, (LOSS,) * 2, [0.2, 0.1], mode=Mode.TRAIN)
        writer.close()

    training = threading.Thread(target=train)
    training.start()
    run, n_known, looks = open_run(path), 0, 0
    while looks < 20 or training.is_alive():
        looks += 1
        run.refresh()
        if "a.weight" not in run.tensor_names():
            continue
        found = run.tensor("a.weight").histograms()
        np.testing.assert_array_equal(found.steps, np.arange(len(found)) * 2)
        assert len(found) >= n_known
        assert (found.block.count == 6).all()
        n_known = len(found)
        counts = run.tensor("a.weight").histogram_columns(8)[1].count
        assert counts.all()
        assert counts.sum() >= 6 * n_known
        assert run.problems == []
    training.join()
    run.refresh()
    assert len(run.tensor("a.weight").histograms().steps) == 300
