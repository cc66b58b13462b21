from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from tdbg_lab.profiler.lifetime import Lifetime, find_process

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    write_run(path, status="running", ended_ns=None)
    return path


def write_run(path: Path, **info) -> None:
    new = path / "run.json.new"
    new.write_text(json.dumps(info))
    new.replace(path / "run.json")


def test_lifetime_goes_on_while_the_run_and_its_process_live(run_path: Path) -> None:
    assert Lifetime(run_path, find_process(os.getpid())).over() is None


def test_lifetime_is_over_when_the_run_has_ended(run_path: Path) -> None:
    lifetime = Lifetime(run_path, find_process(os.getpid()))
    assert lifetime.over() is None
    write_run(run_path, status="finished", ended_ns=1)
    assert lifetime.over() == "the run has ended"


def test_lifetime_is_over_when_the_directory_is_deleted(run_path: Path) -> None:
    lifetime = Lifetime(run_path, find_process(os.getpid()))
    shutil.rmtree(run_path)
    assert lifetime.over() == "the run directory is gone"


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00"])
def test_unreadable_run_file_does_not_end_it(run_path: Path, text: str) -> None:
    lifetime = Lifetime(run_path, find_process(os.getpid()))
    (run_path / "run.json").write_text(text)
    assert lifetime.over() is None


def test_hung_process_is_alive_and_a_killed_one_is_gone_before_it_is_reaped(run_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lifetime = Lifetime(run_path, find_process(child.pid))
    child.send_signal(signal.SIGSTOP)
    assert lifetime.over() is None
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, but still a zombie
    assert psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE
    assert lifetime.over() == "the training process is gone"
    child.communicate()


def test_another_process_with_the_same_number_does_not_count(run_path: Path) -> None:
    process = find_process(os.getpid())
    assert process is not None
    process._ident = (process.pid, 1.0)  # as remembered by somebody who started long ago
    assert Lifetime(run_path, process).over() == "the training process is gone"


def test_process_that_does_not_exist_is_none() -> None:
    assert find_process(2**31 - 1) is None
    assert find_process(-1) is None
