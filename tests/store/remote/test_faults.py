"""Time-outs, 503, cut connections, lost answers, slow bodies, kills: nothing lost, nothing twice."""

from __future__ import annotations

import errno
import json
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tdbg_lab.run import open_run
from tdbg_lab.store.remote import __main__ as sender_process
from tdbg_lab.store.remote import parse_url, sending
from tdbg_lab.store.remote.failures import RemoteError
from tdbg_lab.store.remote.service import Service
from tdbg_lab.store.remote.spool import Spooled, spool_path
from tests.store.remote.buckets import PROVIDERS
from tests.store.remote.sending import (
    assert_same_run,
    eventually,
    fake_training,
    records,
    send,
    uploader,
)

pytestmark = pytest.mark.parametrize("bucket", PROVIDERS, indirect=True)


@pytest.mark.parametrize(
    "shares",
    [
        {"reset": 0.4},
        {"lost": 0.4},
        {"unavailable": 0.15, "reset": 0.15, "lost": 0.15, "stalled": 0.1, "slow": 0.1},
    ],
    ids=["reset", "lost", "all"],
)
def test_faults_at_random_lose_nothing_and_double_nothing(bucket, proxy, shares):
    proxy.shares = shares
    training, spooled = fake_training(bucket.url("first"), raw_every=5, layers=2)
    service = Service(spooled, uploader(spooled, bucket.through(proxy)), flush_s=0.02)
    results = []
    thread = threading.Thread(target=lambda: results.append(service.run(threading.Event())))
    thread.start()
    for _ in range(25):
        training.step()
        time.sleep(0.02)  # spreads the steps over several passes
    training.find()
    training.end()
    thread.join(120)
    assert results == [True]
    assert proxy.faults
    proxy.shares = {}
    assert_same_run(training.path, open_run(bucket.url("first"), storage_options=bucket.options))


def test_reader_behind_faults_sees_everything_once(bucket, proxy):
    training, spooled = fake_training(bucket.url("first"), raw_every=5, layers=2)
    sender = uploader(spooled, bucket.options)
    training.step()
    sender.step(0)
    run = open_run(bucket.url("first"), storage_options=bucket.through(proxy))
    run._mirror._interval_s = 0
    proxy.shares = {"unavailable": 0.1, "reset": 0.1, "lost": 0.1, "stalled": 0.05, "slow": 0.2}
    for _ in range(15):
        training.step()
        sender.step(0)
        run.refresh()
        seen, there = records(run.path)["0/stats"], records(training.path)["0/stats"]
        assert len(seen) == len(set(seen))
        assert set(seen) <= set(there)
    assert proxy.faults
    proxy.shares = {}
    training.end()
    sender.step(0)
    run.refresh()
    assert_same_run(training.path, run)


def test_outage_is_told_to_the_reader_and_what_is_here_stays_readable(bucket, proxy):
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    send(spooled, bucket.options)
    run = open_run(bucket.url("first"), storage_options=bucket.through(proxy))
    run._mirror._interval_s = 0
    proxy.down = True
    assert not run.refresh()
    assert run.last_step == 0
    assert any("cannot be reached" in problem for problem in run.problems)
    with pytest.raises(RemoteError, match="cannot be reached"):
        run.request_stop()
    proxy.down = False
    run.refresh()
    assert run.problems == []
    assert bucket.names("first/control") == []  # the request that failed was withdrawn


def test_outage_is_recorded_in_the_spool_and_what_waits_goes_later(bucket, proxy):
    training, spooled = fake_training(bucket.url("first"))
    proxy.down = True
    service = Service(spooled, uploader(spooled, bucket.through(proxy)), flush_s=0.02)
    thread = threading.Thread(target=service.run, args=(threading.Event(),))
    thread.start()
    for _ in range(10):
        training.step()
    state = eventually(lambda: (found := spooled.state()).problem and found.waiting_bytes and found)
    assert "cannot be reached" in state.problem
    assert state.waiting_bytes > 0
    assert state.failing_since_ns
    assert bucket.names() == []
    proxy.down = False
    training.end()
    thread.join(120)
    assert spooled.state().done
    assert spooled.state().problem is None
    assert_same_run(training.path, open_run(bucket.url("first"), storage_options=bucket.options))


def test_answer_that_comes_too_late_does_no_harm(bucket):
    """A sender was killed; its last, shorter range lands after its successor sent a longer one."""
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    send(spooled, bucket.options)
    (late,) = [key for key in bucket.names() if "stats-000001.arrows" in key]
    short = bucket.read(late)
    bucket.delete(late)
    training.step()
    send(spooled, bucket.options)  # knows nothing of the first: sends both steps as one range
    bucket.write(late, short)
    for _ in range(2):
        training.step()
        send(spooled, bucket.options)
    assert_same_run(training.path, open_run(bucket.url("first"), storage_options=bucket.options))


SENDER = [sys.executable, "-m", "tdbg_lab.store.remote"]


def start_sender(spooled: Spooled, options) -> subprocess.Popen:
    process = subprocess.Popen([*SENDER, str(spooled.path), "--flush", "0.05"], stdin=subprocess.PIPE)
    process.stdin.write(json.dumps(options).encode())
    process.stdin.close()
    return process


@pytest.mark.slow
def test_sender_killed_at_random_moments_loses_nothing(bucket, proxy):
    proxy.shares = {"slow": 0.3}
    options = bucket.through(proxy)
    training, spooled = fake_training(bucket.url("first"), raw_every=3, layers=2)
    moments = random.Random(3)
    for _ in range(5):
        asked = len(proxy.requests)
        sender = start_sender(spooled, options)
        training.step()
        wanted = asked + moments.randint(1, 14)
        while len(proxy.requests) < wanted:
            training.step()
            time.sleep(0.05)
        sender.send_signal(signal.SIGKILL)
        sender.wait()
    training.end()
    assert send(spooled, bucket.options, once=False)
    assert_same_run(training.path, open_run(bucket.url("first"), storage_options=bucket.options))


def test_second_sender_of_a_run_leaves_it_to_the_first(bucket):
    _, spooled = fake_training(bucket.url("first"))
    lock = spooled.lock()
    assert lock.acquire()
    assert sending.send(spooled, bucket.options).busy
    assert bucket.names() == []
    lock.release()
    assert not sending.send(spooled, bucket.options, once=True).busy
    assert bucket.names() == ["first/run.json"]


def test_sender_where_files_cannot_be_locked_says_so(bucket, monkeypatch):
    """As on Lustre that is mounted without locks."""
    _, spooled = fake_training(bucket.url("first"))

    def refuse(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("tdbg_lab.store.remote.lock.fcntl.flock", refuse)
    problem = sender_process._send(spooled, bucket.options, threading.Event())
    assert "TDBG_SPOOL" in problem
    assert spooled.state().problem == problem
    assert not spooled.state().done
    monkeypatch.undo()
    assert not sending.send(spooled, bucket.options, once=True).busy


def test_sender_that_gets_no_thread_sends_what_is_left_of_earlier_trainings_afterwards(bucket, monkeypatch):
    monkeypatch.setattr(sender_process, "stay_behind", lambda *_, **_k: None)  # this process is not a sender
    monkeypatch.setattr(sender_process, "_given", lambda: bucket.options)
    spools = []
    for name in ("earlier", "own"):
        training, spooled = fake_training(bucket.url(name))
        training.step()
        training.end()
        spools.append(spooled)
    monkeypatch.setattr(sender_process, "start_thread", lambda *_: None)  # S3 here has its own
    assert sender_process.main([str(spools[1].path), "--flush", "0.05"]) == 0
    assert all(spooled.state().done for spooled in spools)


TRAINER = """
import os, sys, time
sys.path.insert(0, {root!r})
from tests.store.remote.sending import fake_training
training, spooled = fake_training({url!r}, raw_every=3, layers=2)
while True:
    print(training.step(), flush=True)
    time.sleep(0.01)
"""


@pytest.mark.slow
def test_trainer_killed_leaves_a_sender_that_sends_the_rest(bucket):
    url = bucket.url("first")
    code = TRAINER.format(root=str(Path.cwd()), url=url)
    trainer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    path = spool_path(parse_url(url))
    trainer.stdout.readline()
    sender = start_sender(Spooled(path), bucket.options)
    for _ in range(30):
        acknowledged = int(trainer.stdout.readline())
    trainer.send_signal(signal.SIGKILL)
    trainer.wait()
    assert sender.wait(120) == 0
    run = open_run(url, storage_options=bucket.options)
    assert run.last_step >= acknowledged
    assert run.steps().tolist() == list(range(run.last_step + 1))
    assert str(run.status) == "crashed"
    assert records(path) == records(run.path)
