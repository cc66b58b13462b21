"""Measured rows of a store: kept within bounds, measured again when they were let go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.store.parts import Query
from tdbg_lab.store.smdebug import SmdebugStore, event_files, rows
from tdbg_lab.store.smdebug.profile import ProfileFolder
from tdbg_lab.store.smdebug.state import SmdebugState
from tests.store.smdebug.writing import StoreWriter

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

QUERY = Query(0, None, ("mean", "hist_bins", "hist_counts"))


def test_values_of_a_large_store_are_read_ahead_and_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of a store that does not fit into memory are read in pieces, in whatever order is asked."""
    monkeypatch.setattr(event_files, "KEPT_FILE_BYTES", 4 * 2500)
    writer = StoreWriter(tmp_path / "store")
    for step in range(4):
        tensors = {f"t{i:02}": np.full(50 + 7 * i, 100 * step + i, np.float32) for i in range(30)}
        writer.write(step, tensors)
    store = SmdebugStore(writer.path)
    for names in (store.names(), store.names()[::-1], store.names()[::3], store.names()):
        for name in names:
            i = int(name[1:])
            for step, value in store.values(name).items():
                assert value.shape == (50 + 7 * i,)
                assert (value == 100 * step + i).all()


def test_histograms_that_were_let_go_are_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_files, "KEPT_FILE_BYTES", 0)
    monkeypatch.setattr(rows, "LIST_CACHE_BYTES", 1)
    monkeypatch.setattr(rows, "BATCH_BYTES", 1)
    writer = StoreWriter(tmp_path / "store")
    for step in range(6):
        writer.write(step, {"a": np.full(5, step + 1, np.float32), "b": np.arange(9, dtype=np.float32)})
    state = SmdebugState(SmdebugStore(writer.path), ProfileFolder(writer.path))
    state.refresh()
    first, again = state.read(QUERY), state.read(QUERY)
    assert first.step.tolist() == again.step.tolist() == [*range(6), *range(6)]
    assert first.lists["hist_counts"][0].tolist()[:6] == [1] * 6
    for name in ("hist_bins", "hist_counts"):
        np.testing.assert_array_equal(first.lists[name][1], again.lists[name][1])
    lost = writer.path / "events/000000000002/000000000002_worker_0.tfevents"
    lost.unlink()
    assert state.read(QUERY).step.tolist() == [0, 1, 3, 4, 5] * 2
    assert any("000000000002" in problem for problem in state.problems)
    numbers = state.read(Query(0, None, ("mean",)))  # these are kept
    assert numbers.columns["mean"][:6].tolist() == [1, 2, 3, 4, 5, 6]
