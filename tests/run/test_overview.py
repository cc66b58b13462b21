"""Overviews that are read piece by piece: what comes out, and the memory that it takes meanwhile."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from store.rows import rows

from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.run import Run, open_run
from tdbg_lab.stats import scalar_block
from tdbg_lab.store import RankWriter, create_run, reader, state
from tdbg_lab.store.cache import ColumnCache

STEPS = 50
TENSORS, WANTED, LONG = 16, range(6, 10), 6000
"""Tensors of a long run, those that are looked at, and its steps."""


@pytest.fixture(params=[1, 2])
def run(request, tmp_path) -> Run:
    """Steps 0 to 49 in several segments, of one rank or of two, with some steps that only one of them has."""
    path = create_run(tmp_path / "run").path
    for rank in range(request.param):
        for first in range(0, STEPS, 20):
            writer = RankWriter(path, rank=rank)
            for step in range(first + 3 * rank, min(first + 20, STEPS)):
                writer.append(rows(step, seed=1000 * rank + step))
            writer.close()
    return open_run(path)


@pytest.mark.parametrize("placed_rows", [1, 14, 60])
@pytest.mark.parametrize("n_out", [None, 10])
def test_read_piece_by_piece_it_is_what_is_read_at_once(run, monkeypatch, placed_rows, n_out):
    wanted = {"kind": "weight", "column": "mean", "also": ("l2", "count"), "n_out": n_out}
    expected = run.overview(**wanted)
    monkeypatch.setattr(reader, "_PLACED_ROWS", placed_rows)
    found = run.overview(**wanted)
    assert found.names == expected.names
    np.testing.assert_array_equal(found.steps, expected.steps)
    # a row that no other rank has is merged with nothing, or not at all: that differs in the last bit
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-14)
    for name in ("l2", "count"):
        np.testing.assert_allclose(found.others[name], expected.others[name], rtol=1e-14)
    for step, mean in zip(found.steps.tolist(), found.values[0].tolist(), strict=True):
        assert run.tensor("a.weight").history("mean", steps=(step, step))["mean"].tolist() == pytest.approx(
            [mean]
        )


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # what pytest keeps of one holds all that is around it
def test_some_tensors_do_not_keep_the_decoded_columns_of_all(tmp_path, monkeypatch):
    """Rows of neighbours are a view of a column of all tensors, which stays as long as they do."""
    path = create_run(tmp_path / "run").path
    kinds = [Kind.BIAS if i in WANTED else Kind.WEIGHT for i in range(TENSORS)]
    keys = tuple(TensorKey(f"w{i:02}", kind, "w") for i, kind in enumerate(kinds))
    block = scalar_block(np.arange(TENSORS) + 1.0)
    writer = RankWriter(path)
    for step in range(LONG):
        writer.append(StatsRows(step, Mode.TRAIN, 0, time.time_ns(), keys, block))
    writer.close()
    # as in a run that is much longer than what is kept of it
    monkeypatch.setattr(state, "ColumnCache", lambda: ColumnCache(limit_bytes=1))
    run = open_run(path)
    monkeypatch.setattr(reader, "_PLACED_ROWS", 4096)
    wanted = ("min", "max", "std", "l1", "l2")
    run.overview(kind="bias", column="mean")  # imports, footers
    tracemalloc.start()
    try:
        found = run.overview(kind="bias", column="mean", also=wanted)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.values.shape == (len(WANTED), LONG)
    # what is asked for is a quarter of the columns, and rests in memory; with all of them it was 1.5 times
    assert peak < (1 + len(wanted)) * TENSORS * LONG * 8 * 0.75
