"""Writers: what is on disk after append, rotation, sealing and restart; DuckDB and pandas read it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tdbg_lab.records import Mode
from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, SystemWriter, create_run
from tdbg_lab.store import stream as stream_module
from tdbg_lab.store.ipc import BatchReader
from tdbg_lab.store.layout import SegmentFile
from tdbg_lab.store.schema import STATS, StatsEncoder
from tdbg_lab.store.seal import seal_segment

from .rows import KEYS, rows

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run_path(tmp_path):
    return create_run(tmp_path / "run").path


def files(run_path, pattern="*") -> list[str]:
    return sorted(path.name for path in (run_path / "rank-00000").glob(pattern))


def test_append_is_readable_by_plain_arrow_before_the_writer_closes(run_path):
    writer = RankWriter(run_path)
    writer.append(rows(0))
    writer.append(rows(1))
    data = (run_path / "rank-00000" / "stats-000001.arrows").read_bytes()
    table = pa.ipc.open_stream(data).read_all()
    assert table.schema.equals(STATS)
    assert table["step"].to_pylist() == [0, 0, 0, 1, 1, 1]
    assert table["tensor"].to_pylist()[:3] == [key.name for key in KEYS]
    assert table["shape"].to_pylist()[0] == [2, 3]
    assert table["seq"].to_pylist() == [0, 0, 0, 1, 1, 1]
    assert writer.bytes_written == len(data)
    writer.close()


def test_close_seals_everything_and_may_be_repeated(run_path):
    writer = RankWriter(run_path)
    for step in range(3):
        writer.append(rows(step))
    writer.append_spans(["f"], ["forward"], [5], [7], [0], device="cpu", thread=3)
    writer.close()
    writer.close()
    assert files(run_path) == ["spans-000001.parquet", "stats-000001.parquet"]


def test_append_after_close_writes_nothing_and_is_counted(run_path):
    writer = RankWriter(run_path)
    writer.append(rows(0))
    writer.close()
    writer.append(rows(1))
    assert files(run_path) == ["stats-000001.parquet"]
    assert writer.dropped["stats"] == 1


def test_segment_is_rotated_after_its_batches(run_path):
    writer = RankWriter(run_path, seal=False)
    for step in range(300):
        writer.append(rows(step))
    assert files(run_path) == ["stats-000001.arrows", "stats-000002.arrows"]
    first = BatchReader(run_path / "rank-00000" / "stats-000001.arrows", STATS)
    assert len(first.read()) == 256
    assert first.ended


def test_segment_is_rotated_by_size_and_by_age(run_path, monkeypatch):
    writer = RankWriter(run_path, seal=False)
    monkeypatch.setattr(stream_module, "SEGMENT_BYTES", 10_000)
    for step in range(8):
        writer.append(rows(step))
    grown = len(files(run_path))
    assert grown > 1
    monkeypatch.setattr(stream_module, "SEGMENT_BYTES", 2**30)
    monkeypatch.setattr(stream_module, "SEGMENT_AGE_NS", -1)
    for step in range(100):  # age counts from an eighth of the batches on
        writer.append(rows(step))
    assert grown + 2 <= len(files(run_path)) <= grown + 4


def test_sealed_segment_is_sorted_and_holds_the_same_rows(run_path):
    live = RankWriter(run_path, seal=False)
    for step in (3, 1, 2):
        live.append(rows(step))
        live.append(rows(step, mode=Mode.EVAL))
    live.close()
    path = run_path / "rank-00000" / "stats-000001.arrows"
    before = pa.Table.from_batches(BatchReader(path, STATS).read()).to_pylist()
    assert seal_segment(SegmentFile("stats", 1, sealed=False, path=path)) is None
    after = pq.read_table(path.with_suffix(".parquet")).to_pylist()

    def order(row):
        return (row["tensor"], ["train", "eval"].index(row["mode"]), row["step"])

    assert str(after) == str(sorted(before, key=order))  # as text: NaN equals NaN
    assert not path.exists()


def test_sealed_segment_is_readable_by_duckdb_and_pandas(run_path):
    writer = RankWriter(run_path)
    for step in range(5):
        writer.append(rows(step))
    writer.close()
    pattern = str(run_path / "rank-*" / "stats-*.parquet")
    query = f"select step, mean, list_sum(hist_counts) from '{pattern}' where tensor = 'loss' order by step"
    assert duckdb.sql(query).fetchall()[1:] == [(s, float(s), 1) for s in range(1, 5)]
    frame = pd.read_parquet(run_path / "rank-00000" / "stats-000001.parquet")
    assert frame.loc[frame["tensor"] == "loss", "mean"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_restart_seals_leftovers_and_begins_a_new_segment(run_path):
    crashed = RankWriter(run_path, seal=False)
    crashed.append(rows(0))
    path = run_path / "rank-00000" / "stats-000001.arrows"
    with path.open("ab") as file:
        file.write(path.read_bytes()[-700:-300])  # a torn tail
    torn = run_path / "rank-00000" / ".stats-000000.parquet.1.tmp"
    torn.write_bytes(b"half")
    again = RankWriter(run_path)
    again.append(rows(1))
    again.close()
    assert files(run_path) == ["stats-000001.parquet", "stats-000002.parquet"]
    assert files(run_path, ".*") == []
    assert set(pq.read_table(path.with_suffix(".parquet"))["step"].to_pylist()) == {0}


def test_leftover_without_a_batch_is_removed(run_path):
    writer = RankWriter(run_path, seal=False)
    (run_path / "rank-00000" / "stats-000001.arrows").write_bytes(b"")
    writer = RankWriter(run_path)
    writer.append(rows(0))
    writer.close()
    assert files(run_path) == ["stats-000002.parquet"]


def test_leftover_of_another_stream_is_not_touched(run_path):
    sampler = SystemWriter(run_path)
    sampler.append(1, ["cpu"], ["cpu"], [50.0])
    RankWriter(run_path).close()
    sampler.append(2, ["cpu"], ["cpu"], [60.0])
    assert files(run_path) == ["system-000001.arrows"]
    sampler.close()
    assert pq.read_table(run_path / "rank-00000" / "system-000001.parquet")["value"].to_pylist() == [
        50.0,
        60.0,
    ]


def test_rows_of_other_length_than_keys_are_refused_and_the_writer_goes_on(run_path):
    from dataclasses import replace

    writer = RankWriter(run_path)
    with pytest.raises(ValueError, match="2 keys but 3 rows"):
        writer.append(replace(rows(0), keys=KEYS[:2]))
    writer.append(rows(1))
    writer.close()
    assert set(pq.read_table(run_path / "rank-00000" / "stats-000001.parquet")["step"].to_pylist()) == {1}


def test_encoded_keys_are_kept_per_tuple():
    encoder = StatsEncoder()
    first = encoder.encode(rows(0), 0, STATS)
    second = encoder.encode(rows(1), 1, STATS)
    assert first["tensor"].buffers()[2].address == second["tensor"].buffers()[2].address


def test_reasons_are_written(run_path):
    from dataclasses import replace

    writer = RankWriter(run_path)
    made = rows(0)
    block = replace(made.block, reasons=(None, "meta tensor", None))
    writer.append(replace(made, block=block))
    writer.close()
    table = pq.read_table(run_path / "rank-00000" / "stats-000001.parquet").to_pylist()
    assert {row["tensor"]: row["reason"] for row in table}["activation/b"] == "meta tensor"


def test_spans_take_one_device_or_one_each(run_path):
    writer = RankWriter(run_path)
    writer.append_spans(["a", "b"], ["forward", "other"], [1, 2], [3, 4], [0, -1], device="cpu", thread=9)
    arrays = (np.array([5]), np.array([6]), np.array([1]))
    writer.append_spans(["c"], ["data"], *arrays, device=["gpu0"], thread=[2])
    writer.close()
    table = pq.read_table(run_path / "rank-00000" / "spans-000001.parquet").to_pydict()
    assert table["device"] == ["cpu", "cpu", "gpu0"]
    assert table["thread"] == [9, 9, 2]
    assert table["step"] == [0, -1, 1]


def test_threads_append_without_mixing_batches(run_path):
    writer = RankWriter(run_path, seal=False)

    def work(first: int) -> None:
        for step in range(first, first + 25):
            writer.append(rows(step))

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = BatchReader(run_path / "rank-00000" / "stats-000001.arrows", STATS)
    batches = reader.read()
    assert reader.problem is None
    assert [batch["seq"][0].as_py() for batch in batches] == list(range(75))


# A program of its own forks: this one has threads of many libraries by now, and they may hold locks.
FORKING = """
import os, sys
from pathlib import Path
from tests.store.rows import rows
from tdbg_lab.store import RankWriter

run_path = Path(sys.argv[1])
writer = RankWriter(run_path, seal=False)
writer.append(rows(0))
path = run_path / "rank-00000" / "stats-000001.arrows"
size = path.stat().st_size
child = os.fork()
if child == 0:
    writer.append(rows(1))
    writer.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert path.stat().st_size == size
writer.append(rows(2))
assert path.stat().st_size > size
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_writes_nothing(run_path):
    subprocess.run([sys.executable, "-c", FORKING, run_path], cwd=ROOT, check=True, timeout=120)


def test_writer_removes_the_live_form_that_a_killed_sealer_left_beside_the_sealed_one(run_path):
    unsealed = RankWriter(run_path, seal=False)
    unsealed.append(rows(0))
    unsealed.close()
    live = run_path / "rank-00000" / "stats-000001.arrows"
    content = live.read_bytes()
    RankWriter(run_path).close()
    assert files(run_path) == ["stats-000001.parquet"]
    live.write_bytes(content)  # killed between the rename of the one and the removal of the other
    RankWriter(run_path).close()
    assert files(run_path) == ["stats-000001.parquet"]
    assert open_run(run_path).steps().tolist() == [0]
