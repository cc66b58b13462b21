"""The whole way: a training script, its sender, a bucket, and what people do with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import tdbg_lab
from tdbg_lab.capture import keeping, remote
from tdbg_lab.capture.remote import RemoteStore
from tdbg_lab.cli import run as tdbg
from tdbg_lab.errors import ConfigError, ConflictError, MissingDependencyError, NotFoundError
from tdbg_lab.rules import run_rules
from tdbg_lab.run import open_run
from tdbg_lab.store.remote import parse_url
from tdbg_lab.store.remote.failures import RemoteError
from tdbg_lab.store.remote.spool import Spooled, spool_path
from tests.store.remote.sending import assert_same_run, eventually, fake_training, records, send

pytest.importorskip("torch")

SCRIPT = """
import sys, json
import torch
import tdbg_lab as tdbg
torch.set_num_threads(1)
torch.manual_seed(0)
options = json.loads(sys.argv[2])
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
handle = tdbg.attach(model, optimizer=optimizer, store=sys.argv[1], save_every=1, profiler=False,
                     storage_options=options)
for step in range(int(sys.argv[3])):
    model(torch.randn(4, 8)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if len(sys.argv) > 4 and step == 3:
        print("running", flush=True)
        sys.stdin.readline()
handle.detach()
print(handle.run_path)
"""


def train(url: str, options, steps: int = 6, *more: str, **arguments) -> subprocess.Popen:
    command = [sys.executable, "-c", SCRIPT, url, json.dumps({"flush_s": 0.1, **options}), str(steps), *more]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "PYTHONPATH": str(Path(tdbg_lab.__file__).parent.parent)}
    return subprocess.Popen(command, env=environment, **pipes, **arguments)


def finished(trainer: subprocess.Popen) -> tuple[Path, str]:
    out, err = trainer.communicate(timeout=200)
    assert trainer.returncode == 0, err
    return Path(out.split()[-1]), err


def test_training_goes_to_the_bucket_by_itself(bucket):
    url = bucket.url("a/first")
    path, _ = finished(train(url, bucket.options))
    eventually(lambda: Spooled(path).state().done)
    run = open_run(url, storage_options=bucket.options)
    assert run.last_step == 5
    assert_same_run(path, run)


def test_outage_in_the_middle_blocks_nothing_and_sync_sends_the_rest(bucket, proxy, monkeypatch, capsys):
    url = bucket.url("first")
    trainer = train(url, bucket.through(proxy), 40, "pause")
    assert trainer.stdout.readline() == "running\n"
    proxy.down = True
    trainer.stdin.write("\n")
    trainer.stdin.flush()
    path, _ = finished(trainer)  # while nothing can be sent
    spooled = Spooled(path)
    eventually(lambda: spooled.state().problem)
    monkeypatch.setenv("TDBG_STORAGE_OPTIONS", json.dumps(bucket.through(proxy)))
    assert not spooled.state().done
    monkeypatch.setattr("tdbg_lab.cli.sync.POLL_S", 0.05)
    proxy.down = False  # the sender of the training goes on; sync waits for it, or sends itself
    assert tdbg(["sync"]) == 0
    assert f"{url}  is sent" in capsys.readouterr().out
    assert_same_run(path, open_run(url, storage_options=bucket.options))
    assert tdbg(["sync"]) == 0
    assert "Nothing waits to be sent." in capsys.readouterr().out


def test_object_store_that_is_down_from_the_start_is_said_and_stops_nothing(bucket, proxy, monkeypatch):
    proxy.down = True
    url = bucket.url("first")
    path, said = finished(train(url, bucket.through(proxy)))
    assert "cannot be reached" in said
    assert f"The run is kept in {path} and sent later." in said
    assert open_run(path).last_step == 5
    proxy.down = False
    eventually(lambda: Spooled(path).state().done, timeout_s=120)
    assert_same_run(path, open_run(url, storage_options=bucket.options))


def attach(url: str, options, **arguments):
    return tdbg_lab.attach(store=url, storage_options=options, profiler=False, **arguments)


def test_taken_name_gets_a_number_here_and_there(bucket):
    url = bucket.url("first")
    bucket.write("first/run.json", b'{"format": 1, "id": "somebody else"}')
    with attach(url, bucket.options) as handle:
        assert handle.run_path.name == "first-2"
    assert bucket.read("first/run.json") == b'{"format": 1, "id": "somebody else"}'
    assert "first-2/run.json" in bucket.names()
    with pytest.raises(ConflictError, match=f"Run {url} exists"):
        attach(url, bucket.options, if_exists="error")


def test_name_taken_while_nobody_answered_is_noticed_by_the_sender(bucket):
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    bucket.write("first/run.json", b'{"format": 1, "id": "somebody else"}')
    assert send(spooled, bucket.options)
    assert str(spooled.place()[0]) == bucket.url("first-2")
    assert open_run(bucket.url("first-2"), storage_options=bucket.options).last_step == 0


def test_run_is_resumed_on_a_machine_that_never_saw_it(bucket, tmp_path, monkeypatch):
    url = bucket.url("first")
    with attach(url, bucket.options) as handle:
        handle.log(loss=1.0)
        handle.advance()
    eventually(lambda: Spooled(handle.run_path).state().done)
    monkeypatch.setenv("TDBG_SPOOL", str(tmp_path / "another machine"))
    with attach(url, bucket.options, if_exists="resume") as handle:
        handle.log(loss=2.0)
        handle.advance()
    eventually(lambda: Spooled(handle.run_path).state().done)
    run = open_run(url, storage_options=bucket.options)
    assert run.scalars("loss").values.tolist() == [1.0, 2.0]


RIGHTS = pytest.mark.parametrize(
    ("denied", "action"),
    [(True, "read"), ("^PUT ", "write to"), (r"^GET .*list-type=2", "list")],
    ids=["no rights", "no right to write", "no right to list"],
)


@RIGHTS
def test_bucket_that_refuses_is_said_once_and_stops_nothing(bucket, proxy, denied, action):
    proxy.denied = denied
    url = bucket.url("first")
    trainer = train(url, bucket.through(proxy), 6, "pause")
    assert trainer.stdout.readline() == "running\n"
    spooled = Spooled(spool_path(parse_url(url)))
    said = next(line for line in trainer.stderr if "tdbg-lab" in line)
    eventually(lambda: spooled.state().problem)  # the sender was refused as well
    trainer.stdin.write("\n")
    trainer.stdin.flush()
    path, more = finished(trainer)
    assert path == spooled.path
    assert "The credentials do not allow to" not in more
    assert f"allow to {action} {url} (403, AccessDenied): ask for the right, or use others. " in said
    assert f"The run is kept in {path} and sent later." in said
    run = open_run(path)
    assert (run.last_step, str(run.status)) == (5, "finished")
    proxy.denied = False
    eventually(lambda: spooled.state().done, timeout_s=120)
    assert_same_run(path, open_run(url, storage_options=bucket.options))


def test_missing_credentials_are_said_and_the_run_is_kept(bucket, monkeypatch, caplog):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(RemoteStore, "start_sender", lambda _: None)
    url = bucket.url("first")
    with attach(url, {"endpoint": bucket.options["endpoint"], "region": "us-east-1"}) as handle:
        handle.log(loss=1.0)
        handle.advance()
    (said,) = [one.getMessage() for one in caplog.records if one.name == "tdbg_lab"]
    assert f"No credentials were found for s3://{bucket.name}" in said
    assert f"The run is kept in {handle.run_path} and sent later." in said
    assert open_run(handle.run_path).scalars("loss").values.tolist() == [1.0]


@pytest.mark.parametrize(("denied", "action"), [(True, "read"), (r"^GET .*list-type=2", "list")])
def test_reading_where_it_is_not_allowed_is_said_in_one_sentence(bucket, proxy, denied, action):
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    send(spooled, bucket.options)
    proxy.denied = denied
    with pytest.raises(RemoteError) as caught:
        open_run(bucket.url("first"), storage_options=bucket.through(proxy))
    assert str(caught.value) == (
        f"The credentials do not allow to {action} {bucket.url('first')} (403, AccessDenied): "
        "ask for the right, or use others."
    )


def test_missing_bucket_is_said_before_training_begins(bucket):
    with pytest.raises(RemoteError, match="There is no bucket 'nowhere'"):
        attach("s3://nowhere/first", bucket.options)


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("s3://bucket", "s3://bucket is a whole bucket; expected a folder for the run"),
        ("http://host/x", "'http://host/x' is not a place for runs"),
    ],
)
def test_wrong_place_is_said(place, sentence):
    with pytest.raises(ConfigError, match=sentence):
        attach(place, {})


def test_missing_obstore_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingDependencyError, match=r"pip install tdbg-lab\[s3\]"):
        attach("s3://bucket/first", {})


def test_stop_over_the_bucket_ends_the_training(bucket):
    url = bucket.url("first")
    trainer = train(url, bucket.options, 100_000)
    eventually(lambda: any("stats-000001.arrows" in key for key in bucket.names()), timeout_s=120)
    open_run(url, storage_options=bucket.options).request_stop("enough", by="a reader")
    _, err = trainer.communicate(timeout=200)
    assert trainer.returncode != 0
    assert "enough" in err
    path = spool_path(parse_url(url))
    eventually(lambda: Spooled(path).state().done, timeout_s=120)
    run = open_run(url, storage_options=bucket.options)
    assert str(run.status) == "stopped"
    assert_same_run(path, run)


def test_command_line_reads_addresses(bucket, monkeypatch, capsys):
    with attach(bucket.url("a/first"), bucket.options) as handle:
        handle.log(loss=1.0)
        handle.advance()
    eventually(lambda: Spooled(handle.run_path).state().done)
    monkeypatch.setenv("TDBG_STORAGE_OPTIONS", json.dumps(bucket.options))
    assert tdbg(["runs", bucket.url("a")]) == 0
    assert bucket.url("a/first") in capsys.readouterr().out
    assert tdbg(["stop", bucket.url("a/first")]) == 2
    assert "is finished: there is nothing to stop" in capsys.readouterr().err
    assert run_rules(bucket.url("a/first"), "stalled_training,loss_not_decreasing") == []
    with pytest.raises(NotFoundError, match="no run"):
        run_rules(bucket.url("a/second"))


def test_ranks_of_two_machines_send_into_one_run(bucket, tmp_path, monkeypatch):
    url = bucket.url("first")
    monkeypatch.setenv("WORLD_SIZE", "2")
    chief = attach(url, bucket.options)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("TDBG_SPOOL", str(tmp_path / "another machine"))
    monkeypatch.setattr("tdbg_lab.capture.opening.open_handles", list)  # another machine knows none
    guest = attach(url, bucket.options)
    for handle in (guest, chief):
        handle.log(loss=1.0)
        handle.advance()
        handle.detach()
    run = open_run(url, storage_options=bucket.options)
    run._mirror._interval_s = 0

    def both():
        run.refresh()
        return run.ranks() == [0, 1] and len(run.to_pandas(regex="loss")) >= 1

    eventually(both)
    assert guest.run_path != chief.run_path
    assert [key for key in bucket.names() if key.endswith("run.json")] == ["first/run.json"]


def test_sender_that_is_killed_is_started_again(bucket, monkeypatch, caplog):
    """By the system, when memory is short: nothing more of a long training would have been sent."""
    monkeypatch.setattr(keeping, "START_AGAIN_S", (0.0,) * 4)
    monkeypatch.setattr(remote, "WATCH_S", 0.1)
    url = bucket.url("first")
    with attach(url, {**bucket.options, "flush_s": 0.1}) as handle:
        handle.log(loss=1.0)
        handle.advance()
        handle._engine.flush()
        spooled = Spooled(handle.run_path)
        first = eventually(lambda: senders(spooled))
        for one in first:
            one.kill()
        eventually(lambda: set(senders(spooled)) - set(first))
        handle.log(loss=2.0)
        handle.advance()
        handle._engine.flush()
        written = records(handle.run_path)
        assert len(written["0/stats"]) == 2
        eventually(lambda: records(open_run(url, storage_options=bucket.options).path) == written)
    assert sum("is started again" in one.getMessage() for one in caplog.records) == 1


def senders(spooled: Spooled) -> list[psutil.Process]:
    """Processes of ours that send a run, with Python up."""
    return [one for one in psutil.Process().children() if _sends(one, spooled)]


def _sends(process: psutil.Process, spooled: Spooled) -> bool:
    try:
        return str(spooled.path) in process.cmdline() and bool(spooled.state().time_ns)
    except psutil.Error:  # it was killed, and nobody has waited for it yet
        return False
