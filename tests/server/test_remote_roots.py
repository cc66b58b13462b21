"""A run root on an object store: listed, live, stopped and edited through a real Jupyter server."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time

import pytest

pytest.importorskip("obstore")
pytest.importorskip("moto.server")

from tdbg_lab.server.remote import RemoteRoot
from tdbg_lab.server.roots import make_roots
from tdbg_lab.store.remote.objects import Objects
from tests.store.remote.buckets import Bucket
from tests.store.remote.sending import fake_training, uploader


@pytest.fixture(scope="module")
def s3_server():
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield server.get_host_and_port()
    server.stop()


@pytest.fixture
def bucket(s3_server, tmp_path, monkeypatch):
    monkeypatch.setenv("TDBG_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("TDBG_MIRROR", str(tmp_path / "mirror"))
    return Bucket(*s3_server)


@pytest.fixture
def tdbg_config(bucket):
    return {"run_roots": [bucket.url("runs")], "storage_options": bucket.options}


async def until(condition, timeout_s=60):
    deadline = time.monotonic() + timeout_s
    while not (value := await condition()):
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.1)
    return value


async def in_thread(function, *arguments):
    """The S3 server and its clients share this process: nothing of them may run on the loop."""
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


async def test_remote_run_is_listed_followed_edited_and_stopped(bucket, jp_serverapp, tdbg_fetch):
    training, spooled = fake_training(bucket.url("runs/deep/first"))
    sender = uploader(spooled, bucket.options)
    training.step()
    await in_thread(sender.step, 0)

    async def listed():
        _, answer = await tdbg_fetch("runs")
        return answer["runs"]

    (run,) = await until(listed)
    assert (run["name"], run["path"], run["status"]) == ("first", "deep/first", "running")

    async def last_step(wanted):
        _, detail = await tdbg_fetch("runs", run["id"])
        return detail["last_step"] == wanted

    await until(lambda: last_step(0))
    for _ in range(3):
        training.step()
    await in_thread(sender.step, 0)

    async def followed():
        _, answer = await tdbg_fetch(
            "runs", run["id"], "views", "scalars", method="POST", body={"params": {}}
        )
        return answer["version"] and await last_step(3)

    await until(followed)
    code, _ = await tdbg_fetch("runs", run["id"], method="PATCH", body={"notes": "looks good"})
    assert code == 200
    assert json.loads(await in_thread(bucket.read, "runs/deep/first/edits.json"))["notes"] == "looks good"
    code, answer = await tdbg_fetch("runs", run["id"], "stop", method="POST", body={"reason": "enough"})
    assert code == 200
    request = await in_thread(bucket.read, f"runs/deep/first/control/{answer['request']}.json")
    assert json.loads(request)["reason"] == "enough"
    code, answer = await tdbg_fetch("runs", run["id"], method="DELETE")
    assert code == 409
    assert "is on an object store; delete it there" in answer["message"]
    await in_thread(training.end)


async def test_list_is_answered_while_the_object_store_keeps_silent(
    bucket, jp_serverapp, tdbg_fetch, monkeypatch
):
    asked, answered = threading.Event(), threading.Event()

    def silence(self, *arguments, **others):
        asked.set()
        answered.wait(60)
        raise OSError("silence")

    monkeypatch.setattr(Objects, "folder", silence)
    try:
        code, answer = await tdbg_fetch("runs")  # were it to wait for the object store, it would time out
        assert (code, answer["runs"]) == (200, [])
        assert await in_thread(asked.wait, 60)
        code, _ = await tdbg_fetch("status")
        assert code == 200
    finally:
        answered.set()


def test_remote_root_has_the_name_of_its_folder(bucket, tmp_path):
    first, second = make_roots(
        [bucket.url("a/runs"), str(tmp_path / "runs")], str(tmp_path), storage_options=bucket.options
    )
    assert (first.name, second.name) == ("runs", "runs-2")
    assert first.path.is_relative_to(tmp_path / "mirror")
    assert second.remote is None


def test_remote_root_is_looked_at_once_a_thread_may_be_started(bucket, monkeypatch):
    looked, refusals = threading.Event(), iter([False, True])
    begin = threading.Thread.start

    def start(thread):
        if thread.name.startswith("tdbg-remote") and next(refusals, False):
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    root = RemoteRoot(bucket.url("runs"), bucket.options)
    monkeypatch.setattr(root, "_look", looked.set)
    root.want()
    assert looked.wait(30)
    root.close()
