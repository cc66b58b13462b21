"""Raw values: written in the background, read by us and by safetensors, hostile files refused."""

from __future__ import annotations

import errno
import json
import os
import struct
import time

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tdbg_lab.errors import ConfigError, StepNotFoundError
from tdbg_lab.records import Mode
from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, create_run
from tdbg_lab.store.raw import raw_header, raw_name, read_raw
from tdbg_lab.store.raw_writer import RawWriter
from tests.threads import no_more_threads


@pytest.fixture
def path(tmp_path):
    return create_run(tmp_path / "run").path


DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", ">f4", ">i8"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_value_comes_back_in_its_type(path, dtype):
    value = np.arange(6).reshape(2, 3).astype(dtype)
    writer = RankWriter(path)
    writer.write_raw(100, {"x": value.T, "scalar": value[0, 0], "none": value[:0]}, mode=Mode.TRAIN)
    writer.close()
    file = path / "rank-00000" / "raw" / "step-000000000100.safetensors"
    assert set(load_file(file)) == {"x", "scalar", "none"}
    run = open_run(path)
    found = run.tensor("x").value(100)
    assert found.dtype == np.dtype(dtype).newbyteorder("=")
    assert (found == value.T).all()
    assert run.tensor("scalar").value(100).shape == ()
    assert run.tensor("none").value(100).shape == (0, 3)


def test_value_may_change_right_after_it_was_handed_over(path):
    value = np.zeros(1000)
    writer = RankWriter(path)
    writer.write_raw(0, {"x": value}, mode=Mode.TRAIN)
    value += 1
    writer.close()
    assert (open_run(path).tensor("x").value(0) == 0).all()


def test_calls_at_one_step_share_a_file(path):
    writer = RankWriter(path)
    writer.write_raw(5, {"a": np.zeros(2), "b": np.zeros(2)}, mode=Mode.TRAIN)
    writer.write_raw(5, {"b": np.ones(2), "c": np.ones(3)}, mode=Mode.TRAIN)
    writer.close()
    run = open_run(path)
    assert run.raw_names() == ["a", "b", "c"]
    assert run.tensor("b").value(5).tolist() == [1, 1]


def test_modes_and_micro_steps_have_files_of_their_own(path):
    writer = RankWriter(path)
    for micro in (0, 1):
        writer.write_raw(5, {"x": np.full((2, 3), micro)}, mode=Mode.EVAL, micro=micro)
    writer.write_raw(7, {"x": np.full((1, 3), 9), "x/labels": np.array([4])}, mode=Mode.TRAIN)
    writer.close()
    names = sorted(p.name for p in (path / "rank-00000" / "raw").iterdir())
    assert names == [
        "step-000000000005-eval-m1.safetensors",
        "step-000000000005-eval.safetensors",
        "step-000000000007.safetensors",
    ]
    run = open_run(path)
    x = run.tensor("x")
    assert run.raw_steps("x") == [7]
    assert run.raw_steps("x", mode="eval") == [5]
    assert x.value(5, "eval")[:, 0].tolist() == [0, 0, 1, 1]
    assert x.labels(7).tolist() == [4]
    assert x.labels(5, "eval") is None
    assert {step: value.tolist() for step, value in x.values().items()} == {7: [[9, 9, 9]]}
    with pytest.raises(StepNotFoundError, match="step 5"):
        x.value(5)
    with pytest.raises(ConfigError, match="no mode 'mean'; choose from train, eval, predict"):
        x.values("mean")


def test_ranks_are_joined(path):
    for rank in (0, 1):
        writer = RankWriter(path, rank)
        writer.write_raw(0, {"x": np.full((2, 1), rank)}, mode=Mode.TRAIN)
        writer.close()
    x = open_run(path).tensor("x")
    assert x.value(0)[:, 0].tolist() == [0, 0, 1, 1]
    assert x.value(0, rank=1)[:, 0].tolist() == [1, 1]


def test_file_written_right_after_a_look_is_seen(path):
    """Within the grain of the file system's clock: the folder is as old as it was."""
    writer = RankWriter(path)
    writer.write_raw(0, {"x": np.zeros(2)}, mode=Mode.TRAIN)
    writer.flush()
    folder = path / "rank-00000" / "raw"
    now_ns = time.time_ns()
    os.utime(folder, ns=(now_ns, now_ns))
    run = open_run(path)
    writer.write_raw(1, {"x": np.zeros(2)}, mode=Mode.TRAIN)
    writer.close()
    os.utime(folder, ns=(now_ns, now_ns))
    run.refresh()
    assert run.raw_steps("x") == [0, 1]


def test_folder_that_could_not_be_listed_is_listed_again(path, monkeypatch):
    writer = RankWriter(path)
    writer.write_raw(0, {"x": np.zeros(2)}, mode=Mode.TRAIN)
    writer.close()
    os.utime(path / "rank-00000" / "raw", (1, 1))
    really = os.scandir

    def stale(directory):
        if str(directory).endswith("raw"):
            raise OSError(errno.ESTALE, "Stale file handle")
        return really(directory)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", stale)
        run = open_run(path)
    run.refresh()
    assert run.raw_steps("x") == [0]


def test_file_that_could_not_be_opened_is_tried_again(path, monkeypatch):
    writer = RankWriter(path)
    writer.write_raw(0, {"x": np.zeros(2)}, mode=Mode.TRAIN)
    writer.close()
    run = open_run(path)

    def refused(_file):
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr("tdbg_lab.store.raw_index.raw_header", refused)
        assert run.raw_names() == []
    assert run.raw_names() == ["x"]


def test_type_that_no_file_holds_is_dropped_and_the_rest_written(path):
    writer = RankWriter(path)
    odd = {
        "text": np.array(["a"]),
        "objects": np.array([None]),
        "complex": np.zeros(2, complex),
        "x": np.zeros(2),
    }
    writer.write_raw(0, odd, mode=Mode.TRAIN)
    writer.write_raw(1, {"x": np.zeros(2)}, mode=Mode.TRAIN)
    writer.close()
    assert writer.dropped["raw"] == 3
    assert open_run(path).raw_steps("x") == [0, 1]


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [("x", np.array(["a"]), "values of type <U1"), ("x" * 2000, np.zeros(2), "a name of 2,000 characters")],
)
def test_why_raw_values_are_left_out_is_known(path, name, values, why):
    writer = RankWriter(path)
    assert writer.raw_left_out is None
    writer.write_raw(0, {name: values}, mode=Mode.TRAIN)
    writer.close()
    assert writer.raw_left_out.endswith(f"are left out: no file holds {why}")


def test_full_queue_is_written_once_a_thread_may_be_started(path):
    writer = RawWriter(path, queue_bytes=16)
    with no_more_threads():
        writer.write(0, {"x": np.zeros(2)}, Mode.TRAIN, 0)
    writer.write(1, {"x": np.zeros(2)}, Mode.TRAIN, 0)  # for which there may be no room yet
    writer.flush()
    writer.write(2, {"x": np.zeros(2)}, Mode.TRAIN, 0)
    writer.close()
    assert {raw_name(step, Mode.TRAIN, 0) for step in (0, 2)} <= {
        one.name for one in (path / "raw").iterdir()
    }


def test_bfloat16_written_by_others_is_read_as_float32(tmp_path):
    bits = np.array([0x3F80, 0xC000, 0x7F80], "<u2")
    header = json.dumps({"x": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}).encode()
    file = tmp_path / "step-000000000000.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header + bits.tobytes())
    assert read_raw(file, "x").tolist() == [1.0, -2.0, np.inf]


def described(dtype="F32", shape=(2,), offsets=(0, 8)) -> dict:
    return {"x": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}


HOSTILE = {
    "empty": b"",
    "short": b"\x08",
    "huge header": struct.pack("<Q", 2**62),
    "no JSON": struct.pack("<Q", 8) + b"xxxxxxxx",
    "deep JSON": struct.pack("<Q", 100_000) + b"[" * 100_000,
    "list": struct.pack("<Q", 2) + b"[]",
    **{
        name: struct.pack("<Q", len(json.dumps(value))) + json.dumps(value).encode() + bytes(8)
        for name, value in {
            "outside": described(offsets=(0, 800), shape=(200,)),
            "before": described(offsets=(-8, 0)),
            "other size": described(shape=(9,)),
            "negative shape": described(shape=(-1, -2)),
            "overflow": described(shape=(2**62, 4), offsets=(0, 0)),
            "odd type": described(dtype="PICKLE"),
            "odd entry": {"x": 5},
            "odd shape": {"x": {"dtype": "F32", "shape": "ab", "data_offsets": [0, 8]}},
        }.items()
    },
}


@pytest.mark.parametrize("how", HOSTILE)
def test_hostile_file_is_refused_and_does_not_hide_others(path, how):
    writer = RankWriter(path)
    writer.write_raw(1, {"x": np.zeros(2)}, mode=Mode.TRAIN)
    writer.close()
    bad = path / "rank-00000" / "raw" / raw_name(2, Mode.TRAIN, 0)
    bad.write_bytes(HOSTILE[how])
    with pytest.raises(ValueError, match=r"safetensors|header|tensor|JSON|Expecting|double quotes"):
        raw_header(bad)
    run = open_run(path)
    assert run.raw_steps("x") == [1]
    with pytest.raises(StepNotFoundError):
        run.tensor("x").value(2)


def test_links_and_odd_names_are_not_read(path, tmp_path):
    outside = tmp_path / "secret.safetensors"
    save_file({"x": np.zeros(2)}, outside)
    raw = path / "rank-00000" / "raw"
    raw.mkdir(parents=True)
    (raw / "step-000000000001.safetensors").symlink_to(outside)
    save_file({"x": np.zeros(2)}, raw / "other.safetensors")
    assert open_run(path).raw_names() == []
    raw.rename(tmp_path / "moved")
    (tmp_path / "moved" / "step-000000000002.safetensors").write_bytes(outside.read_bytes())
    raw.symlink_to(tmp_path / "moved")
    assert open_run(path).raw_names() == []
