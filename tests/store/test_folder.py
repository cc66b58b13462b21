"""run.json, edits.json: making, joining, resuming and ending runs; untrusted descriptions."""

from __future__ import annotations

import errno
import json
import math
import os
import shlex
import subprocess
import sys
import threading

import numpy as np
import psutil
import pytest
import torch

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError, ConflictError, NotFoundError, StoreError
from tdbg_lab.records import RunStatus
from tdbg_lab.run import list_runs, open_run
from tdbg_lab.store import RankWriter, create_run, join_run, layout, request, requests
from tdbg_lab.store.info import read_info

from .rows import rows


def test_create_run_describes_the_process(tmp_path):
    folder = create_run(
        tmp_path / "deep" / "run",
        hyperparameters={"lr": 0.1, "bad": math.nan, "array": np.float32(2), "fn": print},
        tags=["a"],
        notes="n",
        framework="torch",
        framework_version="2",
        world_size=4,
        capture={"save_every": 10},
    )
    info = folder.info
    assert (info.name, info.status, info.world_size, info.tags) == ("run", RunStatus.RUNNING, 4, ("a",))
    assert info.pid == os.getpid()
    assert info.process_created_s == psutil.Process().create_time()
    assert info.process_since_boot_s == info.process_created_s - psutil.boot_time()
    assert info.hyperparameters["lr"] == 0.1
    assert info.hyperparameters["bad"] == "NaN"
    assert info.hyperparameters["array"] == 2.0
    assert info.capture == {"save_every": 10}
    json.loads((folder.path / "run.json").read_text(), parse_constant=pytest.fail)


def test_create_run_takes_names_that_are_no_utf8(tmp_path, monkeypatch):
    """As the command line holds those of files that were named in another encoding."""
    odd = os.fsdecode(b"caf\xe9")
    monkeypatch.setattr(sys, "argv", ["train.py", odd])
    folder = create_run(tmp_path / "run", name="Größe", hyperparameters={"data": odd})
    assert folder.info.command == shlex.join(["train.py", odd])
    assert folder.info.hyperparameters == {"data": odd}
    text = (folder.path / "run.json").read_text(encoding="utf-8")
    assert "Größe" in text
    assert r"caf\udce9" in text


def test_create_run_takes_a_branch_that_is_no_utf8(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *words], check=True)
    subprocess.run([b"git", b"checkout", b"-q", b"-b", b"caf\xe9"], check=True)
    git = create_run(tmp_path / "run").info.git
    assert git is not None
    assert git["branch"] == "caf\N{REPLACEMENT CHARACTER}"


def test_create_run_takes_the_first_free_name(tmp_path):
    names = []
    for _ in range(3):
        folder = create_run(tmp_path / "first")
        names.append((folder.path.name, folder.info.name))
    assert names == [("first", "first"), ("first-2", "first-2"), ("first-3", "first-3")]


def test_create_run_uses_an_empty_folder(tmp_path):
    (tmp_path / "run").mkdir()
    assert create_run(tmp_path / "run").path == tmp_path / "run"


def test_create_run_on_a_full_disk_leaves_its_name_to_the_next_one(tmp_path, monkeypatch):
    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left"):
            create_run(tmp_path / "run")
    assert create_run(tmp_path / "run").path == tmp_path / "run"


def test_create_run_raises_when_asked_to(tmp_path):
    create_run(tmp_path / "run")
    with pytest.raises(ConflictError, match="run exists"):
        create_run(tmp_path / "run", if_exists="error")


def test_run_json_is_whole_from_its_first_moment(tmp_path):
    for attempt in range(20):
        folder = tmp_path / f"run{attempt}"
        maker = threading.Thread(target=create_run, args=(folder,))
        maker.start()
        while not (folder / "run.json").exists():
            pass
        assert json.loads((folder / "run.json").read_text())["status"] == "running"
        maker.join()


def test_create_run_many_at_once_make_one_folder_each(tmp_path):
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(create_run(tmp_path / "run").path)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8


def test_resumed_run_keeps_its_identity_and_rows(tmp_path):
    folder = create_run(tmp_path / "run", name="mine")
    writer = RankWriter(folder.path)
    writer.append(rows(0))
    writer.close()
    folder.set_status("failed", "RuntimeError: x")
    again = create_run(tmp_path / "run", if_exists="resume")
    assert again.path == folder.path
    assert (again.info.id, again.info.name) == (folder.info.id, "mine")
    assert (again.info.status, again.info.ended_ns, again.info.error) == (RunStatus.RUNNING, None, None)
    writer = RankWriter(again.path)
    writer.append(rows(1))
    writer.close()
    assert open_run(again.path).steps().tolist() == [0, 1]


def test_join_run_waits_for_the_chief(tmp_path):
    timer = threading.Timer(0.1, create_run, [tmp_path / "run"])
    timer.start()
    assert join_run(tmp_path / "run", 1, timeout_s=30).info.name == "run"
    timer.join()


def test_join_run_gives_up(tmp_path):
    with pytest.raises(NotFoundError, match="Rank 1"):
        join_run(tmp_path / "run", 1, timeout_s=0.01)


def test_set_status_ends_the_run(tmp_path):
    folder = create_run(tmp_path / "run")
    folder.set_status("failed", "boom", last_step=7)
    info = folder.info
    assert (info.status, info.error, info.last_step) == (RunStatus.FAILED, "boom", 7)
    assert info.ended_ns >= info.created_ns
    assert list_runs(tmp_path)[0].last_step == 7


def test_end_of_a_run_is_told_on_a_full_disk_where_it_fits(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = create_run(tmp_path / "run")
    monkeypatch.setattr(layout, "replace_file", full)
    with pytest.raises(StoreError, match="No space left"):
        folder.set_status("failed", "x" * 60_000)
    assert folder.info.status is RunStatus.RUNNING
    folder.set_status("finished", last_step=7)
    folder.set_status("failed", "")  # shorter
    folder.set_status("finished", last_step=8)
    assert (folder.info.status, folder.info.last_step) == (RunStatus.FINISHED, 8)


def test_what_nobody_came_to_is_answered_when_the_run_ends(tmp_path):
    """Asked for in its last step, or with a stop: it waited in the panel for ever."""
    run = create_run(tmp_path / "run")
    first, second = request(run.path, "set"), request(run.path, "stop")
    run.set_status("running")
    assert [one.id for one in run.control()] == [first, second]
    run.set_status("stopped")
    assert run.control() == []
    answers = {(one.state, one.answer) for one in requests(run.path)}
    assert answers == {("refused", "the training ended before it came to that")}


def test_set_status_of_a_deleted_run_is_told(tmp_path):
    folder = create_run(tmp_path / "run")
    (folder.path / "run.json").unlink()
    with pytest.raises(StoreError):
        folder.set_status("finished")


def test_edits_change_what_people_see_and_leave_run_json_alone(tmp_path):
    folder = create_run(tmp_path / "run", tags=["old"], notes="old")
    before = (folder.path / "run.json").read_bytes()
    run = open_run(folder.path)
    version = run.version
    run.edit(name="better", tags=["x", "y"])
    run.edit(notes="new")
    assert (run.info.name, run.info.tags, run.info.notes) == ("better", ("x", "y"), "new")
    assert run.version > version
    assert (folder.path / "run.json").read_bytes() == before


def test_muted_rules_are_kept_each_once_and_can_be_heard_again(tmp_path):
    run = open_run(create_run(tmp_path / "run").path)
    assert run.info.muted == ()
    run.edit(muted=["dead_relu", "overfit", "dead_relu"])
    run.edit(notes="left alone")
    assert open_run(run.path).info.muted == ("dead_relu", "overfit")
    run.edit(muted=[])
    assert run.info.muted == ()


@pytest.mark.parametrize(
    "edit",
    [
        {"name": "x" * 2000},
        {"tags": "word"},
        {"tags": ["x"] * 1000},
        {"notes": 5},
        {"tags": [5]},
        {"muted": "dead_relu"},
    ],
)
def test_edits_out_of_bounds_are_refused(tmp_path, edit):
    run = open_run(create_run(tmp_path / "run").path)
    with pytest.raises(ConfigError):
        run.edit(**edit)
    assert not (run.path / "edits.json").exists()


HOSTILE = [
    "",
    "[]",
    "[" * 100_000,
    "{}",
    '{"format": 1}',
    '{"format": 2, "id": "x"}',
    '{"format": 1, "id": 5}',
    '{"format": 1, "id": "%s"}' % ("x" * 100),
    '{"format": 1, "id": "x", "name": "%s"}' % ("x" * 9_000_000),
    "\ud800",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_run_json_that_is_none_is_not_found(tmp_path, text):
    path = tmp_path / "run"
    path.mkdir()
    (path / "run.json").write_text(text, errors="surrogatepass")
    with pytest.raises(NotFoundError):
        open_run(path)
    assert list_runs(tmp_path) == []


def test_run_json_with_odd_values_is_read_with_defaults(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    odd = {
        "format": 1, "id": "x", "name": ["y"], "created_ns": 1e300, "ended_ns": "z", "status": "dancing",
        "pid": True, "process_created_s": "x", "world_size": -5, "hyperparameters": [],
        "tags": [1, "a", None], "git": 7, "capture": None, "notes": {"a": 1}, "last_step": 2**80, "host": 0,
    }  # fmt: skip
    (path / "run.json").write_text(json.dumps(odd))
    info = read_info(path)
    assert (info.name, info.created_ns, info.ended_ns, info.world_size) == ("run", 0, None, 1)
    assert (info.tags, info.git, info.last_step, info.pid) == (("a",), None, -1, -1)
    assert open_run(path).status in RunStatus
    assert len(list_runs(tmp_path)) == 1


def test_run_json_behind_a_link_is_not_followed(tmp_path):
    real = create_run(tmp_path / "real").path
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "run.json").symlink_to(real / "run.json")
    with pytest.raises(NotFoundError):
        open_run(trap)


def test_run_that_another_process_writes_is_not_resumed(tmp_path):
    code = (
        "import sys; from tdbg_lab.store import create_run\n"
        "create_run(sys.argv[1]); print('made', flush=True); sys.stdin.readline()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "made\n"
        with pytest.raises(ConflictError, match=f"is being written by process {other.pid}, which is alive"):
            create_run(tmp_path / "run", if_exists="resume")
        assert create_run(tmp_path / "run", if_exists="new").path.name == "run-2"
        other.communicate("\n")
    assert create_run(tmp_path / "run", if_exists="resume").info.pid == os.getpid()
    assert create_run(tmp_path / "run", if_exists="resume").path.name == "run"  # a cell that is run again


def test_requests_to_a_training_that_was_killed_do_not_reach_the_next_one(tmp_path):
    folder = create_run(tmp_path / "run")
    request(folder.path, "stop", reason="old")
    create_run(folder.path, if_exists="resume")
    (old,) = requests(folder.path)
    assert (old.state, old.answer) == ("refused", "the training that was asked has ended; ask again")
    request(folder.path, "stop", reason="new")
    assert [one.reason for one in folder.control()] == ["new"]


def test_store_behind_links_that_go_round_in_circles_is_told(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(StoreError, match=r"Cannot make run directory run: .*symbolic links"):
        tdbg.attach(torch.nn.Linear(1, 1), store=tmp_path / "one" / "run")
