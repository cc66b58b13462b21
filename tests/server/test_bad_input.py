from __future__ import annotations

import shutil

import pytest

from tdbg_lab.store import layout
from tdbg_lab.testing import fake_run


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "not a JSON object"),
        (b"[" * 100_000, "not valid JSON"),
        (b"{}", "nothing to change"),
        (b'{"status": "finished"}', "unknown field"),
        (b'{"name": 3}', "not a text"),
        (b'{"name": "  "}', "empty"),
        (b'{"name": "' + b"x" * 300 + b'"}', "at most 200"),
        (b'{"tags": "a"}', "list"),
        (b'{"tags": [1]}', "tag"),
        (b'{"notes": "' + b"x" * 30_000 + b'"}', "at most"),
    ],
)
async def test_patch_says_in_one_sentence_what_is_wrong(tdbg_fetch, run_id, body, words):
    code, answer = await tdbg_fetch("runs", await run_id(), method="PATCH", body=body)
    assert code == 400
    assert words in answer["message"]
    assert answer["reason"] == "ConfigError"
    assert len(answer["message"]) < 300


async def test_body_that_is_too_large_is_refused(tdbg_fetch, run_id):
    code, answer = await tdbg_fetch("runs", await run_id(), method="PATCH", body=b"x" * 300_000)
    assert (code, answer["reason"]) == (413, "BodyTooLargeError")


async def test_unknown_run_is_not_found(tdbg_fetch, run_path):
    code, answer = await tdbg_fetch("runs", "0123456789abcdef")
    assert (code, answer["reason"]) == (404, "NotFoundError")
    assert "0123456789abcdef" in answer["message"]


@pytest.mark.parametrize("run", ["..", "%2e%2e", "0123456789ABCDEF", "0123", "..%2f..%2fetc%2fpasswd"])
async def test_what_is_no_id_is_no_route(tdbg_fetch, run):
    assert (await tdbg_fetch("runs", run))[0] == 404


async def test_unknown_mode_is_refused(tdbg_fetch, run_id):
    code, answer = await tdbg_fetch("runs", await run_id(), "steps", params={"mode": "dream"})
    assert (code, answer["reason"]) == (400, "ConfigError")


async def test_message_with_percent_sign_is_answered_as_it_is(tdbg_fetch, run_id):
    _, answer = await tdbg_fetch("runs", await run_id(), "steps", params={"mode": "100%s"})
    assert "100%s" in answer["message"]


async def test_setting_that_is_no_word_is_refused(tdbg_fetch, run_id):
    body = {"setting": ["learning_rate"], "value": 0.1}
    code, answer = await tdbg_fetch("runs", await run_id(), "settings", method="POST", body=body)
    assert (code, answer["reason"]) == (400, "ConfigError")
    assert "There is no setting" in answer["message"]


async def test_expression_that_is_no_unicode_is_one_that_fits_nothing(tdbg_fetch, run_id):
    run, body = await run_id(), rb'{"params": {"regex": "\ud800"}}'
    code, answer = await tdbg_fetch("runs", run, "views", "scalars", method="POST", body=body)
    assert code == 200
    assert answer["figure"]["layout"]["meta"]["tdbg"]["view"] == "scalars"
    assert r"\ud800" in str(answer["figure"]["layout"]), "the figure says what fits nothing"


async def test_unexpected_error_tells_no_secrets(tdbg_fetch, run_id, monkeypatch):
    from tdbg_lab.run import Run

    def fail(*_args, **_kwargs):
        raise OSError("/secret/place")

    run = await run_id()
    monkeypatch.setattr(Run, "rule_states", fail)
    code, answer = await tdbg_fetch("runs", run, "rules")
    assert code == 500
    assert "secret" not in answer["message"]


async def test_run_of_another_user_is_not_ours_to_write(tdbg_fetch, run_id, root, monkeypatch, caplog):
    """On a shared machine that is no fault of the server: no 500, and no traceback in its log."""

    def refuse(path, *_args, **_kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    fake_run(root / "runs" / "going", steps=3, status="running", close=False)
    ended, going = await run_id("first"), await run_id("going")
    monkeypatch.setattr(layout, "replace_file", refuse)
    monkeypatch.setattr(shutil, "rmtree", refuse)
    for asked, method, body, words in (
        ((ended,), "PATCH", {"notes": "mine"}, "Cannot write edits.json: Permission denied."),
        ((ended,), "DELETE", None, "The run 'first' cannot be deleted: Permission denied."),
        ((going, "stop"), "POST", {}, "Cannot ask run going: Permission denied."),
    ):
        status, answer = await tdbg_fetch("runs", *asked, method=method, body=body)
        assert (status, answer["message"]) == (403, words)
    assert "Uncaught" not in caplog.text
