"""Requests to the training process."""

from __future__ import annotations

import json
import os

import pytest

from tdbg_lab.errors import ConfigError, NotFoundError, StoreError
from tdbg_lab.run import open_run
from tdbg_lab.store import ControlPoll, answer, create_run, pending, request, requests


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


def test_poll_sees_a_request_and_looks_only_when_something_changed(path, monkeypatch):
    from tdbg_lab.store import control

    poll = ControlPoll(path)
    assert poll() == []
    request(path, "stop")
    assert len(poll()) == 1
    old = 10**18
    os.utime(path / "control", ns=(old, old))
    assert len(poll()) == 1
    monkeypatch.setattr(control, "pending", lambda _: pytest.fail("looked though nothing changed"))
    assert len(poll()) == 1


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
