"""How a run stands, and runs below a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

import tdbg_lab as tdbg
from tdbg_lab.errors import NotFoundError
from tdbg_lab.records import Kind, Mode, RunStatus, StatsRows, TensorKey
from tdbg_lab.rules.presence import Presence
from tdbg_lab.run import list_runs, open_run
from tdbg_lab.stats.block import scalar_block
from tdbg_lab.store import RankWriter, create_run
from tdbg_lab.store.layout import read_json, write_json
from tdbg_lab.testing import fake_run
from tdbg_lab.testing.fake import FakeTraining


def test_status_of_a_process_that_is_gone_is_crashed(tmp_path):
    code = "import sys; from tdbg_lab.store import create_run; create_run(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], check=True)
    assert open_run(tmp_path / "run").status == RunStatus.CRASHED
    assert list_runs(tmp_path)[0].status == RunStatus.CRASHED


def test_status_of_a_pid_that_was_used_again_is_crashed(tmp_path):
    path = fake_run(tmp_path / "run", steps=1, status="crashed")
    value = read_json(path / "run.json")
    assert value["pid"] == os.getpid()
    assert open_run(path).status == RunStatus.CRASHED


def test_status_of_a_run_that_goes_on_stays_when_the_clock_is_set(tmp_path, monkeypatch):
    path = fake_run(tmp_path / "run", steps=1, status="running")
    booted_s = psutil.boot_time()
    monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: booted_s + 3600.0)  # it moves with the clock
    assert open_run(path).status == RunStatus.RUNNING
    assert Presence(path).over() is None


def test_status_in_another_container_is_crashed_after_long_silence(tmp_path):
    """Containers that share the machine's network share its name, but not its numbers of processes."""
    path = fake_run(tmp_path / "run", steps=2, status="running")
    value = read_json(path / "run.json")
    long_ago = time.time_ns() - 10**12
    elsewhere = {"process_space": "pid:[1]", "pid": 2**22 + 1, "created_ns": long_ago}
    write_json(path / "run.json", {**value, **elsewhere})
    assert open_run(path).status == RunStatus.RUNNING
    assert Presence(path).over() is None
    for file in (path / "rank-00000").glob("*.parquet"):
        os.utime(file, ns=(long_ago, long_ago))
    assert open_run(path).status == RunStatus.CRASHED


def test_status_on_another_host_is_crashed_after_long_silence(tmp_path):
    path = fake_run(tmp_path / "run", steps=2, status="running")
    value = read_json(path / "run.json")
    long_ago = time.time_ns() - 10**12
    write_json(path / "run.json", {**value, "host": "elsewhere", "created_ns": long_ago})
    assert open_run(path).status == RunStatus.RUNNING
    for file in (path / "rank-00000").glob("*.parquet"):
        os.utime(file, ns=(long_ago, long_ago))
    assert open_run(path).status == RunStatus.CRASHED


def test_open_run_of_nothing_is_not_found(tmp_path):
    with pytest.raises(NotFoundError, match="no run at nowhere"):
        open_run(tmp_path / "nowhere")


def test_list_runs_finds_runs_below_the_newest_first(tmp_path):
    for name in ("a", "group/b", "group/deep/c", ".hidden/d", "node_modules/e"):
        create_run(tmp_path / name).set_status("finished", last_step=3)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "file").write_text("x")
    found = list_runs(tmp_path)
    assert [summary.info.name for summary in found] == ["c", "b", "a"]
    assert [summary.last_step for summary in found] == [3, 3, 3]
    assert len(list_runs(tmp_path, limit=2)) == 2
    assert list_runs(tmp_path / "nowhere") == []
    assert list_runs(tmp_path / "a")[0].info.name == "a"


def test_list_runs_leaves_out_folders_that_are_not_ours_to_look_into(tmp_path, monkeypatch):
    create_run(tmp_path / "mine")
    (tmp_path / "theirs").mkdir()
    is_file = Path.is_file

    def refuse(path):
        if path.parent.name == "theirs":
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refuse)
    assert [summary.info.name for summary in list_runs(tmp_path)] == ["mine"]


def test_list_runs_knows_the_last_step_of_a_sealed_crashed_run(tmp_path):
    fake_run(tmp_path / "run", steps=7, status="crashed")
    (summary,) = list_runs(tmp_path)
    assert (summary.last_step, summary.status) == (6, RunStatus.CRASHED)


@pytest.mark.parametrize("steps", [1, 3, 300])
@pytest.mark.parametrize("torn", [0, 1, 2000])
def test_list_runs_knows_the_last_step_of_a_killed_run(tmp_path, steps, torn):
    training = FakeTraining(tmp_path / "run", layers=1, seal=False)
    for _ in range(steps + bool(torn)):  # the last one was cut off
        training.step()
    *_, segment = sorted((training.path / "rank-00000").glob("stats-*.arrows"))
    os.truncate(segment, segment.stat().st_size - torn)
    training.end("crashed", close=False)
    (summary,) = list_runs(tmp_path)
    assert summary.last_step == open_run(training.path).last_step == steps - 1


def test_list_runs_knows_the_last_step_where_the_newest_segment_holds_nothing_yet(tmp_path):
    training = FakeTraining(tmp_path / "run", layers=1)
    training.step()
    training.end("crashed")
    directory = training.path / "rank-00000"
    (directory / "stats-000002.arrows").write_bytes(b"")
    (summary,) = list_runs(tmp_path)
    assert summary.last_step == 0


def test_list_runs_knows_no_step_of_a_live_segment_that_is_garbage(tmp_path):
    training = FakeTraining(tmp_path / "run", layers=1, seal=False)
    training.step()
    (segment,) = (training.path / "rank-00000").glob("stats-*.arrows")
    data = segment.read_bytes()
    for garbage in (b"x" * 1000, data[:-8] + b"\xff" * 5000, data[: len(data) // 2] + bytes(3000)):
        segment.write_bytes(garbage)
        training.end("crashed", close=False)
        (summary,) = list_runs(tmp_path)
        assert summary.last_step in {-1, 0}


def test_run_that_made_no_step_says_so_itself(tmp_path):
    model = torch.nn.Linear(2, 1)
    handle = tdbg.attach(model, store=tmp_path / "run", rules="none", profiler=False)
    handle.detach()
    assert open_run(tmp_path / "run").info.last_step == -1


def test_run_that_made_no_step_has_none(tmp_path):
    """What rules check of a set-up stands at step 0, and older versions say 0 at the end of such a run."""
    folder = create_run(tmp_path / "run")
    writer = RankWriter(folder.path)
    key = TensorKey("check/weights", Kind.CHECK)
    writer.append(StatsRows(0, Mode.TRAIN, 0, time.time_ns(), (key,), scalar_block([1.0])))
    writer.close()
    for _ in range(2):
        run = open_run(folder.path)
        (summary,) = list_runs(tmp_path)
        assert (run.last_step, list(run.steps()), run.modes(), summary.last_step) == (-1, [], [], -1)
        assert run.scalars("check/weights").values.tolist() == [1.0]
        folder.set_status("finished", last_step=0)


@pytest.mark.parametrize("status", ["crashed", "finished"])
def test_run_that_made_one_step_has_that(tmp_path, status):
    path = fake_run(tmp_path / "run", steps=1, status=status)
    (summary,) = list_runs(tmp_path)
    assert (open_run(path).last_step, summary.last_step) == (0, 0)


def test_list_runs_takes_a_thousand_quickly(tmp_path):
    path = create_run(tmp_path / "run").path
    value = read_json(path / "run.json")
    for number in range(1000):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        (folder / "run.json").write_text(
            json.dumps({**value, "status": "finished", "ended_ns": 5, "last_step": 1})
        )
    begin = time.process_time()
    assert len(list_runs(tmp_path)) == 1001
    assert time.process_time() - begin < 2
