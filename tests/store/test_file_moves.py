"""Replacing, removing and opening files that somebody has open, on a system that refuses it for a while."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tdbg_lab.errors import StoreError
from tdbg_lab.records import RunStatus
from tdbg_lab.run import open_run
from tdbg_lab.store import file_moves
from tdbg_lab.store.file_moves import remove_file, replace_file
from tdbg_lab.store.layout import read_json, write_json
from tdbg_lab.testing import fake_run


class Refusing:
    """A function of the system that says no as often as it is told, as Windows does while a file is open."""

    def __init__(self, function, times):
        self.function = function
        self.left = times

    def __call__(self, *args, **kwargs):
        if self.left:
            self.left -= 1
            raise PermissionError(13, "The process cannot access the file")
        return self.function(*args, **kwargs)


@pytest.fixture
def refuse(monkeypatch):
    """Let a function of a module or class refuse for a while, on a system where that passes."""
    monkeypatch.setattr(file_moves, "OPEN_FILES_BLOCK", True)
    monkeypatch.setattr(file_moves.time, "sleep", lambda _: None)

    def refuse(owner, name, times):
        refusing = Refusing(getattr(owner, name), times)

        def call(*args, **kwargs):  # unlike an object, a function takes part as a method
            return refusing(*args, **kwargs)

        monkeypatch.setattr(owner, name, call)

    return refuse


def test_file_that_is_read_just_now_is_replaced_a_moment_later(tmp_path, refuse):
    file, temporary = tmp_path / "run.json", tmp_path / ".tmp"
    file.write_text("old")
    temporary.write_text("new")
    refuse(Path, "replace", 3)
    replace_file(temporary, file)
    assert file.read_text() == "new"


def test_file_that_is_read_just_now_is_removed_a_moment_later(tmp_path, refuse):
    file = tmp_path / "stats-000001.arrows"
    file.write_text("x")
    refuse(Path, "unlink", 3)
    remove_file(file)
    assert not file.exists()
    remove_file(file)  # it is gone, which is what was wanted


def test_description_of_a_run_is_written_and_read_while_others_have_it_open(tmp_path, refuse):
    file = tmp_path / "run.json"
    refuse(Path, "replace", 2)
    write_json(file, {"status": "finished"})
    refuse(os, "open", 2)
    assert read_json(file) == {"status": "finished"}


def test_file_that_stays_forbidden_is_told(tmp_path, refuse):
    refuse(Path, "replace", 1000)
    with pytest.raises(StoreError, match=r"Cannot write run\.json: The process cannot access"):
        write_json(tmp_path / "run.json", {})
    assert list(tmp_path.iterdir()) == []


def test_other_systems_mean_it_the_first_time(tmp_path, refuse, monkeypatch):
    monkeypatch.setattr(file_moves, "OPEN_FILES_BLOCK", False)
    refuse(Path, "unlink", 1)
    with pytest.raises(PermissionError):
        remove_file(tmp_path / "x")


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS])
def test_run_is_recorded_where_files_cannot_be_synchronised(tmp_path, monkeypatch, number):
    """As on some file systems in user space."""

    def refuse(_descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    path = fake_run(tmp_path / "run", steps=30, layers=2)
    assert list((path / "rank-00000").glob("stats-*.parquet"))
    assert open_run(path).status is RunStatus.FINISHED


def test_file_that_is_not_on_the_disk_is_told(tmp_path, monkeypatch):
    def fail(_descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match="Input/output error"):
        write_json(tmp_path / "run.json", {})
