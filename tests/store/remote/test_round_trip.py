"""What is written here is read there: exactly, live, and once."""

from __future__ import annotations

import threading
import time
from urllib.parse import unquote

import pyarrow as pa
import pytest

from tdbg_lab.records import RunStatus
from tdbg_lab.run import list_runs, open_run
from tdbg_lab.store import pending, requests
from tdbg_lab.store.control import answer
from tdbg_lab.store.remote import parse_url
from tdbg_lab.store.remote import uploader as sending_side
from tdbg_lab.store.remote.service import Service
from tests.store.remote.buckets import PROVIDERS
from tests.store.remote.sending import assert_same_run, eventually, fake_training, send, uploader

pytestmark = pytest.mark.parametrize("bucket", PROVIDERS, indirect=True)


def test_a_finished_run_is_the_same_on_the_object_store(bucket):
    training, spooled = fake_training(bucket.url("a/first"), raw_every=5)
    for _ in range(20):
        training.step()
    training.find()
    training.end()
    assert send(spooled, bucket.options, once=False)
    assert spooled.state().done
    run = open_run(bucket.url("a/first"), storage_options=bucket.options)
    assert run.status is RunStatus.FINISHED
    assert_same_run(training.path, run)


def test_objects_are_the_files_of_the_run_directory(bucket):
    training, spooled = fake_training(bucket.url("first"))
    for _ in range(3):
        training.step()
    training.end()
    assert send(spooled, bucket.options)
    for key in bucket.names():
        assert bucket.read(key) == (training.path / key.removeprefix("first/")).read_bytes()


def test_live_segment_on_the_object_store_is_an_arrow_stream(bucket):
    training, spooled = fake_training(bucket.url("first"))
    for _ in range(3):
        training.step()
        assert send(spooled, bucket.options)
    parts = sorted(key for key in bucket.names() if "/stats-000001.arrows/" in key)
    assert len(parts) == 3
    stream = b"".join(bucket.read(key) for key in parts)
    with pa.ipc.open_stream(stream) as reader:
        assert [batch["step"][0].as_py() for batch in reader] == [0, 1, 2]


def test_sign_of_life_is_sent_also_after_the_clock_was_set_back(bucket, monkeypatch):
    """Without it the run counts as crashed two minutes later."""
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    service = Service(spooled, uploader(spooled, bucket.options))
    service._pass()
    bucket.delete("first/run.json")
    monkeypatch.setattr(sending_side, "HEARTBEAT_NS", 0)
    now_ns = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now_ns - 3600 * 10**9)
    service._pass()
    assert "first/run.json" in bucket.names()
    training.end()


def test_reader_sees_steps_as_they_are_sent(bucket):
    training, spooled = fake_training(bucket.url("first"))
    sender = uploader(spooled, bucket.options)
    training.step()
    sender.step(0)
    run = open_run(bucket.url("first"), storage_options=bucket.options)
    run._mirror._interval_s = 0
    for step in range(1, 6):
        training.step()
        sender.step(0)
        assert run.refresh()
        assert run.last_step == step
    training.end()
    sender.step(0)
    assert run.refresh()
    assert run.status is RunStatus.FINISHED
    assert_same_run(training.path, run)


def test_reader_looks_no_more_often_than_its_interval(bucket, proxy):
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    send(spooled, bucket.options)
    run = open_run(bucket.url("first"), storage_options=bucket.through(proxy))
    asked = len(proxy.requests)
    for _ in range(100):
        run.refresh()
    assert len(proxy.requests) <= asked + 2 * 3  # at most a look or two, were this slow


def test_nothing_new_costs_a_reader_two_requests_and_no_download(bucket, proxy):
    training, spooled = fake_training(bucket.url("first"))
    for _ in range(5):
        training.step()
    send(spooled, bucket.options)
    run = open_run(bucket.url("first"), storage_options=bucket.through(proxy))
    run._mirror._interval_s = 0
    proxy.requests.clear()
    assert not run.refresh()
    assert [unquote(request).split("?")[0].rpartition("/")[2] for request in proxy.requests] == [
        "run.json",
        bucket.name,
    ]


def test_two_readers_with_copies_of_their_own_see_the_same(bucket, tmp_path, monkeypatch):
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    sender = uploader(spooled, bucket.options)
    sender.step(0)
    runs = []
    for name in ("one", "two"):
        monkeypatch.setenv("TDBG_MIRROR", str(tmp_path / name))
        runs.append(open_run(bucket.url("first"), storage_options=bucket.options))
        runs[-1]._mirror._interval_s = 0
    for _ in range(4):
        training.step()
        sender.step(0)
    for run in runs:
        run.refresh()
        assert_same_run(training.path, run)


def test_two_readers_of_one_copy_do_not_disturb_each_other(bucket):
    training, spooled = fake_training(bucket.url("first"))
    sender = uploader(spooled, bucket.options)
    training.step()
    sender.step(0)
    one, two = (open_run(bucket.url("first"), storage_options=bucket.options) for _ in range(2))
    one._mirror._interval_s = two._mirror._interval_s = 0
    for _ in range(4):
        training.step()
        sender.step(0)
        one.refresh()
        two.refresh()
    training.end()
    sender.step(0)
    two.refresh()
    one.refresh()
    assert_same_run(training.path, one)
    assert_same_run(training.path, two)


def test_stop_request_reaches_the_training_and_its_answer_the_reader(bucket):
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    sender = uploader(spooled, bucket.options)
    sender.step(0)
    run = open_run(bucket.url("first"), storage_options=bucket.options)
    run._mirror._interval_s = 0
    identity = run.request_stop("it diverges", by="somebody")
    sender.step(0)
    (found,) = pending(training.path)
    assert (found.id, found.kind, found.reason, found.by) == (identity, "stop", "it diverges", "somebody")
    answer(training.path, identity, "done", "stopped at step 0")
    sender.step(0)
    run.refresh()
    assert [(each.state, each.answer) for each in requests(run.path)] == [("done", "stopped at step 0")]


def test_edits_of_a_reader_reach_other_readers(bucket, tmp_path, monkeypatch):
    training, spooled = fake_training(bucket.url("first"))
    training.end()
    send(spooled, bucket.options)
    open_run(bucket.url("first"), storage_options=bucket.options).edit(name="better", tags=["x"])
    monkeypatch.setenv("TDBG_MIRROR", str(tmp_path / "other"))
    other = open_run(bucket.url("first"), storage_options=bucket.options)
    assert (other.info.name, other.info.tags) == ("better", ("x",))


def test_findings_of_a_runner_travel(bucket):
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    sender = uploader(spooled, bucket.options)
    sender.step(0)
    run = open_run(bucket.url("first"), storage_options=bucket.options)
    run._mirror._interval_s = 0
    assert run.findings() == []
    training.find()
    sender.step(0)
    assert run.refresh()
    assert [finding.rule for finding in run.findings()] == ["dead_relu"]
    assert len(run.rule_states()) == 2


def test_runs_are_listed_newest_first_with_their_addresses(bucket):
    for name in ("old", "deep/er/new"):
        training, spooled = fake_training(bucket.url(f"all/{name}"))
        training.step()
        training.end()
        send(spooled, bucket.options)
    bucket.write("all/notes.txt", b"not a run")
    found = list_runs(bucket.url("all"), storage_options=bucket.options)
    assert [each.url for each in found] == [bucket.url("all/deep/er/new"), bucket.url("all/old")]
    assert [each.last_step for each in found] == [0, 0]
    assert found[0].status is RunStatus.FINISHED


def test_another_run_at_the_same_place_replaces_the_copy(bucket):
    training, spooled = fake_training(bucket.url("first"))
    for _ in range(3):
        training.step()
    send(spooled, bucket.options)
    run = open_run(bucket.url("first"), storage_options=bucket.options)
    assert run.last_step == 2
    for key in bucket.names():
        bucket.delete(key)
    other, spooled = fake_training(bucket.url("elsewhere/first"), raw_every=0)
    other.step()
    spooled.set_place(parse_url(bucket.url("first")), chief=True)
    send(spooled, bucket.options)
    run._mirror._interval_s = 0
    run.refresh()
    assert run.last_step == 0
    assert_same_run(other.path, run)


def test_service_waits_for_the_end_of_the_run(bucket):
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    service = Service(spooled, uploader(spooled, bucket.options), flush_s=0.05)
    results = []
    thread = threading.Thread(target=lambda: results.append(service.run(threading.Event())))
    thread.start()
    eventually(lambda: any("stats-000001.arrows" in key for key in bucket.names()))
    assert thread.is_alive()
    training.step()
    training.end()
    thread.join(60)
    assert results == [True]
    assert_same_run(training.path, open_run(bucket.url("first"), storage_options=bucket.options))
