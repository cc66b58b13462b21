"""Broken and foreign files in a run: left out with a reason, and nothing raises."""

from __future__ import annotations

import base64
import json
import os
import shutil
import time
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.run import list_runs, open_run
from tdbg_lab.store import RunFolder
from tdbg_lab.store.schema import SCHEMAS
from tdbg_lab.testing import fake_run
from tests.rules.made import Made

GARBAGE = {
    "stats-000005.arrows": b"garbage " * 50,
    "stats-000002.parquet": b"PAR1" + b"garbage" * 50 + b"PAR1",
    "stats-000003.parquet": b"",
    "stats-000004.arrows": b"",
    "spans-000005.parquet": b"PAR1" * 9,
    "system-000005.arrows": b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    "stats-99999999999.arrows": b"x",
    "notes.txt": b"x",
}


def test_garbage_in_a_run_is_left_out_with_a_reason(tmp_path):
    path = fake_run(tmp_path / "run", steps=5)
    rank = path / "rank-00000"
    for name, data in GARBAGE.items():
        (rank / name).write_bytes(data)
    (path / "rank-00007").write_bytes(b"a file, not a directory")
    (path / "rank-00008").symlink_to(rank)
    (rank / "stats-000010.parquet").symlink_to(rank / "stats-000001.parquet")
    (rank / "stats-000011.arrows").mkdir()
    run = open_run(path)
    assert run.last_step == 4
    assert run.ranks() == [0]
    assert len(run.problems) == 5
    assert all(str(tmp_path) not in problem for problem in run.problems)
    assert not run.refresh()
    assert len(run.spans()) == 20


def test_file_that_is_written_to_its_end_in_its_place_is_a_problem_no_more(tmp_path):
    path = fake_run(tmp_path / "run", steps=5)
    segment = path / "rank-00000" / "stats-000001.parquet"
    whole = segment.read_bytes()
    segment.write_bytes(whole[: len(whole) // 2])
    time.sleep(0.15)  # what changed just now is listed at each look
    run = open_run(path)
    assert run.problems == ["stats-000001.parquet is not a Parquet file"]
    assert run.last_step == -1
    with segment.open("ab") as file:
        file.write(whole[len(whole) // 2 :])
    assert run.refresh()
    assert (run.last_step, run.problems) == (4, [])


@pytest.mark.parametrize("folder", [False, True])
def test_file_that_is_gone_is_a_problem_no_more(tmp_path, folder):
    path = fake_run(tmp_path / "run", steps=5)
    broken = path / "rank-00001" / "stats-000001.parquet"
    broken.parent.mkdir()
    broken.write_bytes(b"x" * 64)
    run = open_run(path)
    assert len(run.problems) == 1
    broken.unlink()
    if folder:
        broken.parent.rmdir()
    run.refresh()
    assert run.problems == []


def test_sealed_segment_with_a_lying_index_is_left_out(tmp_path):
    path = fake_run(tmp_path / "run", steps=5, findings=False)
    good = path / "rank-00000" / "stats-000001.parquet"
    file = pq.ParquetFile(good)
    table, metadata = file.read(), dict(file.metadata.metadata)
    steps = base64.b64decode(metadata[b"tdbg.steps"])
    lies = {
        b"tdbg.runs": [base64.b64encode(np.array([[0, 0, 0, 10**9, 1]], "<i4")), b"x", b""],
        b"tdbg.keys": [b"", b"[]", b"{}", b"[" * 100_000, b'[["a", "weight", "", "", [], [], 0]]', b"[[5]]"],
        b"tdbg.steps": [
            *(b"", base64.b64encode(b"x" * 24), b"!"),
            *(base64.b64encode(steps + np.array([mode, 0, 0], "<i8").tobytes()) for mode in (-1, 3)),
        ],
        b"tdbg": [b"", b"{}", b'{"format": 1}', b'{"format": 7, "uid": "x"}'],
    }
    for key, values in lies.items():
        for value in values:
            with pq.ParquetWriter(good, table.schema) as writer:
                writer.write_table(table)
                writer.add_key_value_metadata({**metadata, key: bytes(value)})
            run = open_run(path)
            assert run.steps().tolist() == [], (key, value)
            assert len(run.problems) == 1


@pytest.mark.parametrize("extent", [b"[1e999, 1]", b"[1, null]", b"[1]", b"5"])
def test_sealed_samples_with_a_lying_index_are_left_out(tmp_path, extent):
    path = fake_run(tmp_path / "run", steps=5, findings=False)
    good = path / "rank-00000" / "system-000001.parquet"
    file = pq.ParquetFile(good)
    table = file.read()
    with pq.ParquetWriter(good, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({**file.metadata.metadata, b"tdbg.extent": extent})
    run = open_run(path)
    assert run.samples().empty
    assert run.last_sample_ns is None
    assert len(run.problems) == 1


@pytest.mark.parametrize("stream", ["spans", "system"])
def test_sealed_rows_that_lack_a_value_are_left_out(tmp_path, stream):
    path = fake_run(tmp_path / "run", steps=5, findings=False)
    good = path / "rank-00000" / f"{stream}-000001.parquet"
    file = pq.ParquetFile(good)
    table = file.read()
    last = table.column_names[1]
    lacking = pa.array([None] * len(table), table.schema.field(last).type)
    with pq.ParquetWriter(good, table.schema) as writer:
        writer.write_table(table.set_column(1, table.schema.field(last), lacking))
        writer.add_key_value_metadata(file.metadata.metadata)
    run = open_run(path)
    assert run.spans().empty is (stream == "spans")
    assert run.samples().empty is (stream == "system")
    assert not run.sample_series(["cpu"]) or stream == "spans"
    assert run.problems == [f"{good.name}: a row lacks a value"]


def test_broken_segment_of_samples_hides_no_other(tmp_path):
    path = fake_run(tmp_path / "run", steps=5, findings=False)
    good = path / "rank-00000" / "system-000001.parquet"
    file = pq.ParquetFile(good)
    table, broken = file.read(), good.with_name("system-000002.parquet")
    header = json.loads(file.metadata.metadata[b"tdbg"]) | {"uid": "another"}
    with pq.ParquetWriter(broken, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({**file.metadata.metadata, b"tdbg": json.dumps(header).encode()})
    data = bytearray(broken.read_bytes())
    data[4 : len(data) // 4] = bytes(len(data) // 4 - 4)
    broken.write_bytes(data)
    run = open_run(path)
    for _ in range(2):
        samples = sum(len(one.value) for one in run.sample_series(["cpu"]))
        assert samples == table["metric"].to_pylist().count("cpu")
    assert run.problems == ["system-000002.parquet is broken"]


def test_samples_that_could_not_be_read_for_a_moment_are_read_again(tmp_path, monkeypatch):
    run = open_run(fake_run(tmp_path / "run", steps=5, findings=False))
    (metric, *_) = set(run.samples()["metric"]) - {"cpu", "gpu", "memory"}
    run.sample_series(["cpu"])

    def fail(file):
        raise OSError(5, "Input/output error", str(file))

    with monkeypatch.context() as patched:
        patched.setattr("tdbg_lab.store.parquet.open_regular", fail)
        assert not run.sample_series([metric])
    assert run.sample_series([metric])


@pytest.mark.parametrize("last", ["no rows", "no times"])
def test_live_samples_without_a_time_do_not_raise(tmp_path, last):
    path = fake_run(tmp_path / "run", steps=5, findings=False)
    rank = path / "rank-00000"
    file = pq.ParquetFile(rank / "system-000001.parquet")
    sealed, header = file.read(), json.loads(file.metadata.metadata[b"tdbg"]) | {"uid": "another"}
    schema = SCHEMAS["system"].with_metadata({b"tdbg": json.dumps(header)})
    (batch,) = sealed.slice(0, 3).combine_chunks().to_batches()
    timeless = pa.RecordBatch.from_pylist([{**row, "time_ns": None} for row in batch.to_pylist()], schema)
    with pa.ipc.new_stream(rank / "system-000002.arrows", schema) as stream:
        stream.write_batch(batch.slice(0, 0) if last == "no rows" else timeless)
    run = open_run(path)
    assert run.last_sample_ns == max(run.samples()["time_ns"])
    assert len(run.problems) == (last == "no times")


def test_sealed_segment_with_broken_pages_does_not_raise(tmp_path):
    path = fake_run(tmp_path / "run", steps=5, findings=False)
    good = path / "rank-00000" / "stats-000001.parquet"
    data = bytearray(good.read_bytes())
    data[4 : len(data) // 3] = os.urandom(len(data) // 3 - 4)
    good.write_bytes(data)
    run = open_run(path)
    assert run.last_step == 4  # the index is whole
    run.to_pandas()
    run.overview(kind=None, column="q50")
    run.tensor("layer0.weight").histograms()
    assert run.problems


def test_files_are_closed_when_they_are_read(tmp_path):
    """Not by the collector of garbage, which some interpreters run seldom."""
    path = fake_run(tmp_path / "run", steps=5, layers=1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        run = open_run(path)
        run.tensor(run.tensor_names()[0]).history(["mean"])
        assert len(run.spans())
    assert [str(one.message) for one in told] == []


def test_problem_with_a_file_does_not_tell_its_path(tmp_path, monkeypatch):
    from tdbg_lab.store import parquet

    path = fake_run(tmp_path / "run", steps=3)
    run = open_run(path)

    def fail(file):
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(parquet, "open_regular", fail)
    assert run.stats("layer0.weight", "mean").empty
    assert run.problems == ["stats-000001.parquet: Permission denied"]


@pytest.mark.parametrize("given", [5, None, b"runs", ["runs"]])
def test_what_is_no_place_is_refused_in_one_sentence(given):
    for read in (open_run, list_runs):
        with pytest.raises(ConfigError, match="is no place of a run; give its directory"):
            read(given)


def test_folder_of_runs_is_told_from_a_folder_without_one(tmp_path):
    with pytest.raises(NotFoundError, match=r"run\.json is missing"):
        open_run(tmp_path)
    fake_run(tmp_path / "first", steps=1)
    with pytest.raises(NotFoundError, match=r"no run at .*: it is a folder of runs, .*list_runs"):
        open_run(tmp_path)


def test_run_whose_rows_were_not_copied_says_so(tmp_path):
    path = fake_run(tmp_path / "run", steps=3)
    RunFolder(path).set_status("finished", last_step=2)
    assert open_run(path).problems == []
    shutil.rmtree(path / "rank-00000")
    run = open_run(path)
    assert (run.last_step, run.tensor_names()) == (-1, [])
    (problem,) = run.problems
    assert problem == (
        "Run run went on to step 2, but nothing of it is here: copy its directory with all that is in it; "
        "the folders rank-00000, ... are missing."
    )
    (path / "rank-00000").mkdir()
    (problem,) = open_run(path).problems
    assert problem.endswith("copy its directory with all that is in it.")


def test_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(NotFoundError, match=r"There is no run at nowhere: there is no such folder\."):
        open_run(tmp_path / "nowhere")


def test_name_that_no_folder_can_have_is_said(tmp_path):
    with pytest.raises(NotFoundError, match=r"There is no run at a{300}: File name too long\."):
        open_run(tmp_path / ("a" * 300))


def test_what_a_run_says_of_itself_counts_its_tensors_by_name(tmp_path):
    run = open_run(fake_run(tmp_path / "run", steps=3, modes=("train", "eval")))
    assert repr(run) == f"<Run run: finished, {len(run.tensor_names())} tensors, step 2>"
    with pytest.raises(NotFoundError, match="There is no tensor '3'"):
        run.tensor(3)


def test_facts_for_rules_are_not_offered_for_a_name_that_is_none_of_theirs(tmp_path):
    made = Made(tmp_path / "run")
    made.step(0, {"loss/x": 1.0, "check/x": 1.0})
    made.end()
    run = open_run(tmp_path / "run")
    for ask in (run.tensor, run.scalars):
        with pytest.raises(NotFoundError, match=r"Did you mean 'loss/x'\?$"):
            ask("x")
        with pytest.raises(NotFoundError, match="Did you mean 'check/x'"):
            ask("check/xx")


def test_a_name_that_is_nearly_one_of_the_run_is_answered_with_it(tmp_path):
    run = open_run(fake_run(tmp_path / "run", steps=3))
    name = next(one for one in run.tensor_names() if one.startswith("gradient/"))
    near = f"Did you mean '{name}'"
    with pytest.raises(NotFoundError, match=near):
        run.tensor(name.replace("gradient", "gradent"))
    with pytest.raises(NotFoundError, match=near):
        run.scalars(name.upper())
