"""Histograms of many steps, merged to few: what comes out, and the memory that it takes meanwhile."""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import fields

import numpy as np
import pytest
from store.rows import rows

from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.run import Run, open_run
from tdbg_lab.stats import merge
from tdbg_lab.store import RankWriter, create_run
from tdbg_lab.store import tensor as tensors
from tdbg_lab.testing import block_of
from tdbg_lab.views import call_view

STEPS = 100


@pytest.fixture(params=["sealed", "two ranks"])
def run(request, tmp_path) -> Run:
    """Steps 0 to 99 in several segments; with two ranks each step has two rows."""
    path = create_run(tmp_path / "run").path
    for rank in range(2 if request.param == "two ranks" else 1):
        for first in range(0, STEPS, 30):
            writer = RankWriter(path, rank=rank)
            for step in range(first, min(first + 30, STEPS)):
                writer.append(rows(step, seed=1000 * rank + step))
            writer.close()
    return open_run(path)


@pytest.mark.parametrize("merged_rows", [1, 7, 4096])
@pytest.mark.parametrize("steps", [None, (13, 90)])
def test_merged_piece_by_piece_they_are_those_merged_at_once(run, monkeypatch, merged_rows, steps):
    monkeypatch.setattr(tensors, "_MERGED_ROWS", merged_rows)
    tensor = run.tensor("a.weight")
    all_of_them = tensor.histograms(steps=steps)
    ends = all_of_them.steps[2::3]
    last = int(np.searchsorted(all_of_them.steps, ends[-1])) + 1
    kept = tensor.histograms(steps=(int(all_of_them.steps[0]), int(ends[-1])))
    assert len(kept) == last
    expected = merge(kept.block, np.searchsorted(ends, kept.steps), len(ends))
    found = tensor.histograms_until(ends, steps=steps)
    assert found.count.sum() == expected.count.sum() > 0
    for each in fields(expected):
        np.testing.assert_array_equal(getattr(found, each.name), getattr(expected, each.name), each.name)


@pytest.mark.parametrize("merged_rows", [7, 4096])
def test_first_and_last_stay_alone_however_few_are_merged_at_once(run, monkeypatch, merged_rows):
    monkeypatch.setattr(tensors, "_MERGED_ROWS", merged_rows)
    tensor = run.tensor("a.weight")
    full, few = tensor.histograms(), tensor.histograms(n_out=8)
    assert len(few) == 8
    assert (few.steps[0], few.steps[-1]) == (0, STEPS - 1)
    assert few.block.count[[0, -1]].tolist() == full.block.count[[0, -1]].tolist()
    starts = np.searchsorted(full.steps, few.steps)
    np.testing.assert_array_equal(few.block.count, np.add.reduceat(full.block.count, starts))


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> tuple[Run, int]:
    """A tensor whose values spread over many bins, at many steps, and the bytes of its histograms."""
    path = create_run(tmp_path_factory.mktemp("wide") / "run").path
    key = (TensorKey("w", Kind.WEIGHT, "w", "float32", (2000,)),)
    random = np.random.default_rng(0)
    block = block_of([np.exp(random.normal(size=2000) * 20)])
    writer = RankWriter(path)
    for step in range(3000):
        writer.append(StatsRows(step, Mode.TRAIN, 0, time.time_ns(), key, block))
    writer.close()
    return open_run(path), 3000 * (block.hist_bins.nbytes + len(block.hist_bins) * 4)


@pytest.mark.parametrize(("view", "more"), [("histogram", {"n_out": 100}), ("slices", {})])
def test_a_picture_of_many_steps_takes_less_memory_than_their_histograms(wide, monkeypatch, view, more):
    """With all of them at hand at once it took several times as much."""
    run, nbytes = wide
    monkeypatch.setattr(tensors, "_MERGED_ROWS", 256)
    call_view(run, view, {"tensor": "w", **more})  # what is kept on purpose, and imports
    tracemalloc.start()
    try:
        call_view(run, view, {"tensor": "w", **more})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < nbytes
