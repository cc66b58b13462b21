"""Values and measured rows of a store: kept within bounds, read again when they were let go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.errors import StoreError
from tdbg_lab.run import open_run
from tdbg_lab.store.layout import open_regular
from tdbg_lab.store.parts import Query
from tdbg_lab.store.smdebug import SmdebugStore, bands, event_files, rows, values
from tdbg_lab.store.smdebug.profile import ProfileFolder
from tdbg_lab.store.smdebug.state import SmdebugState
from tests.store.smdebug.writing import StoreWriter

if TYPE_CHECKING:
    from pathlib import Path

QUERY = Query(0, None, ("mean", "hist_bins", "hist_counts"))


@pytest.mark.parametrize("per_file", [100, 700, 2500])
def test_values_of_a_large_store_are_read_ahead_and_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, per_file: int
) -> None:
    """Files of a store that does not fit into memory are read in pieces, in whatever order is asked."""
    steps = [0, 1, 2, 3, 126, 127, 128, 200, 998, 999, 1000, 1001]  # records grow with their numbers
    for module in (event_files, bands, values):
        monkeypatch.setattr(module, "KEPT_FILE_BYTES", len(steps) * per_file)
    writer = StoreWriter(tmp_path / "store")
    for step in steps:
        tensors = {f"t{i:02}": np.full(50 + 7 * i, 100 * step + i, np.float32) for i in range(30)}
        writer.write(step, tensors)
    store = SmdebugStore(writer.path)
    for names in (store.names(), store.names()[::-1], store.names()[::3], store.names()):
        for name in names:
            i, found = int(name[1:]), store.values(name)
            assert list(found) == steps
            for step, value in found.items():
                assert value.shape == (50 + 7 * i,)
                assert (value == 100 * step + i).all()
                value[:] = -1  # the caller's own


def test_reading_tensor_by_tensor_opens_each_file_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = StoreWriter(tmp_path / "store")
    for step in range(8):
        writer.write(step, {f"t{i:02}": np.full((4, 4), step, np.float32) for i in range(40)})
    run, opened = open_run(writer.path), []
    monkeypatch.setattr(event_files, "open_regular", lambda path: opened.append(path) or open_regular(path))
    for name in run.tensor_names():
        assert len(run.tensor(name).values()) == 8
    assert len(opened) <= 2 * 8  # the first tensor alone, then all the others at once


def test_one_broken_record_costs_only_its_own_value(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store")
    for step in range(8):
        tensors = {name: np.full(9, step, np.float32) for name in ("a", "b")}
        writer.write(step, {**tensors, "half": np.float16(step), "text": np.array([f"at {step}"])})
    files = sorted(writer.path.rglob("*.tfevents"))
    files[2].write_bytes(files[2].read_bytes().replace(b"\x0a\x01b", b"\x0a\x01x"))
    files[5].write_bytes(files[5].read_bytes()[:100])
    run = open_run(writer.path)
    assert list(run.tensor("a").values()) == [0, 1, 2, 3, 4, 6, 7]
    found = run.tensor("b").values()
    assert {step: value.tolist() for step, value in found.items()} == {
        step: [step] * 9 for step in (0, 1, 3, 4, 6, 7)
    }
    halves = run.tensor("half").values()
    assert [(value.dtype, value.shape, float(value)) for value in halves.values()] == [
        (np.float16, (), step) for step in (0, 1, 2, 3, 4, 6, 7)
    ]
    assert [value.tolist() for value in run.tensor("text").values().values()][:2] == [["at 0"], ["at 1"]]
    with pytest.raises(StoreError, match="holds 'x'"):
        SmdebugStore(writer.path).values("b")


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
