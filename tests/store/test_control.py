"""Requests to the training process."""

from __future__ import annotations

import json
import os
import time

import pytest

from tdbg_lab.errors import ConfigError, NotFoundError, StoreError
from tdbg_lab.run import open_run
from tdbg_lab.store import ControlPoll, answer, create_run, pending, request, requests
from tdbg_lab.store.layout import CLOCK_GRAIN_NS
from tdbg_lab.store.limits import MAX_REQUESTS


@pytest.fixture
def path(tmp_path):
    return create_run(tmp_path / "run").path


def test_request_is_pending_until_it_is_answered(path):
    identity = open_run(path).request_stop("too slow", by="me")
    (found,) = pending(path)
    assert (found.id, found.kind, found.reason, found.by) == (identity, "stop", "too slow", "me")
    answer(path, identity, "done", "stopped at step 5")
    assert pending(path) == []
    (found,) = requests(path)
    assert (found.state, found.answer) == ("done", "stopped at step 5")
    assert found.answered_ns >= found.created_ns


@pytest.mark.parametrize("changed_s", [10**9, 4 * 10**9], ids=["past", "future"])
def test_poll_sees_a_request_and_looks_only_when_something_changed(path, changed_s):
    """Whatever the clock says meanwhile: it may have been set back."""
    poll = ControlPoll(path)
    assert poll() == []
    identity = request(path, "stop")
    assert [one.id for one in poll()] == [identity]
    os.utime(path / "control", (changed_s, changed_s))
    assert [one.id for one in poll()] == [identity]
    time.sleep(2 * CLOCK_GRAIN_NS / 1e9)
    (path / "control" / f"{identity}.json").write_text("{}")  # the folder does not change by that
    assert [one.id for one in poll()] == [identity], "looked though nothing changed"
    request(path, "profile")
    assert [one.kind for one in poll()] == ["profile"]


def test_poll_hears_a_request_after_thousands_were_answered(path):
    poll = ControlPoll(path)
    _answered(path, MAX_REQUESTS + 500)
    for kind in ("stop", "set", "profile"):
        identity = request(path, kind)
        assert [one.id for one in poll()] == [identity]
        answer(path, identity, "done")
        assert poll() == []


def test_poll_reads_no_request_again_that_was_answered(path):
    poll = ControlPoll(path)
    _answered(path, 1)
    assert poll() == []
    (first,) = requests(path)
    (path / "control" / f"{first.id}.json").write_text(json.dumps({"kind": "stop", "state": "pending"}))
    identity = request(path, "stop")
    assert [one.id for one in poll()] == [identity]


def test_the_latest_of_thousands_of_requests_are_told(path):
    _answered(path, MAX_REQUESTS + 500)
    identity = request(path, "stop")
    found = requests(path)
    assert len(found) == MAX_REQUESTS
    assert found[-1].id == identity
    assert [one.id for one in pending(path)] == [identity]


def _answered(path, count):
    """Requests that were made and answered some time ago."""
    for number in range(count):
        file = path / "control" / f"{number:032x}.json"
        file.write_text(json.dumps({"kind": "set", "state": "done", "created_ns": number}))
        os.utime(file, (10**9 + number, 10**9 + number))


def test_requests_come_oldest_first(path):
    kinds = ["stop", "profile", "stop"]
    ids = [request(path, kind) for kind in kinds]
    assert [found.id for found in pending(path)] == ids


def test_request_kind_is_a_word(path):
    for kind in ("", "Stop", "../x", "a b", "x" * 100):
        with pytest.raises(ConfigError):
            request(path, kind)


def test_answer_to_nothing_is_not_found(path):
    for identity in ("0" * 32, "../../run", "x", ""):
        with pytest.raises(NotFoundError):
            answer(path, identity, "done")


def test_garbage_in_control_is_left_out(path):
    identity = request(path, "stop")
    control = path / "control"
    for number, text in enumerate(["", "[]", "{}", '{"kind": 5, "state": "pending"}', "[" * 99_999]):
        (control / f"{number:032x}.json").write_text(text)
    (control / "note.txt").write_text("x")
    (control / f"{'a' * 32}.json").symlink_to(path / "run.json")
    (control / f"{'b' * 32}.json").write_text(json.dumps({"kind": "stop", "state": "pending", "answer": 5}))
    assert {found.id for found in pending(path)} == {identity, "b" * 32}


def test_control_behind_a_link_is_neither_read_nor_written(path, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (path / "control").rmdir()
    (path / "control").symlink_to(elsewhere)
    with pytest.raises(StoreError):
        request(path, "stop")
    assert list(elsewhere.iterdir()) == []
    assert pending(path) == []


@pytest.mark.skipif(not hasattr(os, "fchmod"), reason="needs the rights of POSIX")
@pytest.mark.parametrize(
    ("folder", "file"), [(0o755, 0o644), (0o2775, 0o644), (0o750, 0o640), (0o700, 0o600)]
)
def test_request_can_be_read_by_whoever_may_list_the_folder(path, folder, file):
    """The owner of the training is another user, and nobody tells of a request that it cannot read."""
    for one in (path, path / "control"):
        one.chmod(folder)
    umask = os.umask(0o077)
    try:
        identity = request(path, "stop")
        open_run(path).edit(name="again")
        made = [path / "edits.json", path / "control" / f"{identity}.json"]
        assert [one.stat().st_mode & 0o777 for one in made] == [file, file]
        answer(path, identity, "done")
    finally:
        os.umask(umask)
    assert [one.stat().st_mode & 0o777 for one in made] == [file, file]
    assert {one.stat().st_gid for one in made} == {path.stat().st_gid}


def test_request_that_cannot_be_written_names_the_run(path, monkeypatch):
    def denied(*_arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tdbg_lab.store.layout.replace_file", denied)
    with pytest.raises(StoreError, match=r"^Cannot ask run run: Permission denied\.$"):
        request(path, "stop")
    assert requests(path) == []
