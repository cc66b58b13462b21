"""Spans of a part of the time: only what lies near is decoded."""

from __future__ import annotations

import numpy as np
import pytest

from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, create_run
from tdbg_lab.store.parquet import SealedFile

SPANS = 20_000


@pytest.fixture
def path(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)
    for first in range(0, SPANS, 1000):
        steps = list(range(first, first + 1000))
        writer.append_spans(
            ["step"] * 1000, ["forward"] * 1000, [1000 * s for s in steps], [900] * 1000, steps
        )
    writer.close()
    assert [file.suffix for file in (path / "rank-00000").glob("spans-*")] == [".parquet"]
    return path


@pytest.mark.parametrize(("first", "last"), [(0, 5), (7000, 7003), (2040, 2060), (19_990, 30_000)])
def test_part_of_the_time_is_read_without_the_rest(path, first, last, monkeypatch):
    def whole(_):
        raise AssertionError("all of the segment was read")

    monkeypatch.setattr(SealedFile, "read_all", whole)
    spans = open_run(path).spans(start_ns=1000 * first, end_ns=1000 * last)
    np.testing.assert_array_equal(spans["step"], np.arange(first, min(last + 1, SPANS)))
    assert spans["phase"].unique().tolist() == ["forward"]


def test_all_is_the_sum_of_its_parts(path):
    run = open_run(path)
    parts = [run.spans(start_ns=1000 * low, end_ns=1000 * (low + 3000) - 1) for low in range(0, SPANS, 3000)]
    steps = np.concatenate([part["step"] for part in parts])
    np.testing.assert_array_equal(steps, np.arange(SPANS))
    np.testing.assert_array_equal(run.spans()["step"], steps)
    np.testing.assert_array_equal(run.spans(start_ns=5_000_000, end_ns=5_003_000)["step"], range(5000, 5004))
