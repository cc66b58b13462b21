"""What is wrong is said in one sentence, and nothing is lost by it."""

from __future__ import annotations

import itertools
import json
import logging
import os
import subprocess
import sys

import pytest
import requests

from tdbg_lab import attach
from tdbg_lab.errors import ConfigError, MissingDependencyError, NotFoundError, StoreError
from tdbg_lab.run import list_runs, open_run
from tdbg_lab.store.remote import is_url, parse_url, spool
from tdbg_lab.store.remote.failures import RemoteError, explained
from tdbg_lab.store.remote.objects import Objects
from tdbg_lab.store.remote.options import storage_options
from tdbg_lab.store.remote.own_folders import byte_limit
from tdbg_lab.store.remote.place import LOCK, make_room
from tdbg_lab.store.remote.service import unsent_runs
from tdbg_lab.store.remote.spool import Spooled, UploadState, spool_path, spooled_runs, tidy
from tests.store.remote.buckets import PROVIDERS
from tests.store.remote.sending import fake_training, send


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("ftp://host/x", "'ftp://host/x' is not a place for runs; expected a folder, s3://bucket/path"),
        ("s3://", "'s3://' is not a place for runs"),
        ("s3://bu cket/x", "is not a place for runs"),
        ("s3://bucket/../x", "'..' in 's3://bucket/../x' cannot be the name of a folder"),
    ],
)
def test_wrong_address_is_said(place, sentence):
    assert is_url(place)
    with pytest.raises(ConfigError, match=sentence.replace(".", "\\.")):
        open_run(place)


def test_address_with_a_secret_is_refused_without_repeating_it():
    with pytest.raises(ConfigError, match="holds no credentials") as caught:
        parse_url("s3://key:very-secret@bucket/x")
    assert "very-secret" not in str(caught.value)


@pytest.mark.parametrize("place", ["runs/first", "/tmp/x", "C:/runs", "C:\\runs", "s3", "a:b"])
def test_folders_are_no_addresses(place):
    assert not is_url(place)


def test_path_that_swallowed_a_slash_is_still_an_address():
    assert str(parse_url("s3:/bucket/x/")) == "s3://bucket/x"


def test_missing_bucket_is_said(bucket):
    with pytest.raises(RemoteError, match=r"There is no bucket 'nowhere' \(s3://nowhere\)") as caught:
        open_run("s3://nowhere/first", storage_options=bucket.options)
    assert not caught.value.transient
    with pytest.raises(RemoteError, match="There is no bucket 'nowhere'"):
        list_runs("s3://nowhere/runs", storage_options=bucket.options)


def test_bucket_without_rights_is_said_and_the_data_kept(bucket):
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    server = bucket.options["endpoint"]
    requests.post(f"{server}/moto-api/reset-auth", data="0", timeout=10)  # from now on it checks
    try:
        assert not send(spooled, bucket.options)
        said = spooled.state().problem
        assert said.startswith(f"The credentials do not allow to write to {bucket.url('first')} (403")
        assert said.endswith("ask for the right, or use others.")
        assert spooled.state().waiting_bytes > 0
        with pytest.raises(RemoteError, match="do not allow to read"):
            open_run(bucket.url("first"), storage_options=bucket.options)
    finally:
        requests.post(f"{server}/moto-api/reset-auth", data="inf", timeout=10)
    assert send(spooled, bucket.options)
    assert open_run(bucket.url("first"), storage_options=bucket.options).last_step == 0


def test_no_server_is_said_with_its_address(bucket):
    options = {**bucket.options, "endpoint": "http://127.0.0.1:9"}
    with pytest.raises(RemoteError, match=r"at http://127\.0\.0\.1:9 cannot be reached") as caught:
        open_run(bucket.url("first"), storage_options=options)
    assert caught.value.transient


def test_missing_run_is_said(bucket):
    with pytest.raises(NotFoundError, match=f"There is no run at {bucket.url('none')}: it has no run.json"):
        open_run(bucket.url("none"), storage_options=bucket.options)


def test_unknown_option_is_said_without_values(bucket):
    with pytest.raises(ConfigError, match="'bogus' is not a storage option of s3://") as caught:
        open_run(bucket.url("x"), storage_options={"bogus": "secret"})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["[1]", "no json", '"text"'])
def test_broken_options_in_the_environment_are_said(monkeypatch, text):
    monkeypatch.setenv("TDBG_STORAGE_OPTIONS", text)
    with pytest.raises(ConfigError, match="TDBG_STORAGE_OPTIONS is not a JSON object"):
        storage_options(parse_url("s3://bucket/x"))


def test_options_of_the_longest_address_count(monkeypatch, tmp_path):
    file = tmp_path / "storage.json"
    value = {"s3://b": {"region": "one"}, "s3://b/runs": {"region": "two"}, "s3://b/ru": {"region": "three"}}
    file.write_text(json.dumps(value))
    monkeypatch.setenv("TDBG_STORAGE_CONFIG", str(file))
    assert storage_options(parse_url("s3://b/runs/first")) == {"region": "two"}
    assert storage_options(parse_url("s3://b/other")) == {"region": "one"}
    assert storage_options(parse_url("s3://other/runs")) == {}
    assert storage_options(parse_url("s3://b/x"), {"region": "mine"}) == {"region": "mine"}


@pytest.mark.parametrize(("url", "options"), [("gs://b/x", {}), ("az://c/x", {"account_name": "a"})])
def test_other_providers_open(url, options):
    assert str(Objects(parse_url(url), options).url) == url


@pytest.mark.parametrize(
    ("says", "expected"),
    [("Please run 'az login'.", "(Please run 'az login')"), (None, "(Azure Cli not installed)")],
)
def test_azure_command_line_without_a_sign_in_is_said(tmp_path, monkeypatch, says, expected):
    if says is not None:
        program = tmp_path / "az"
        program.write_text(f'#!/bin/sh\necho "{says}" >&2\nexit 1\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setenv("AZURE_USE_AZURE_CLI", "true")
    monkeypatch.setenv("TDBG_MIRROR", str(tmp_path / "mirror"))
    with pytest.raises(RemoteError) as caught:
        open_run("az://container/x", storage_options={"account_name": "account"})
    assert (
        str(caught.value) == f"The Azure command line gives no token for az://container {expected}: az login."
    )
    assert caught.value.denied


@pytest.mark.parametrize(
    ("url", "address", "expected"),
    [("gs://b/x", "metadata.google.internal", "gcloud auth"), ("az://c/x", "169.254.169.254", "az login")],
)
def test_what_a_provider_expects_is_said_where_there_are_no_credentials(url, address, expected):
    error = OSError(f"Error performing GET http://{address}/token in 2s - HTTP error: error sending request")
    said = str(explained(error, parse_url(url), "read"))
    assert said.startswith(f"No credentials were found for {url[:-2]}; expected ")
    assert expected in said


def test_azure_without_an_account_is_said():
    with pytest.raises(ConfigError, match=r"az://c cannot be opened: .*Account must be specified"):
        Objects(parse_url("az://c/x"), {})


def test_missing_obstore_is_said_with_the_command_that_installs_it():
    code = """
import sys
sys.modules["obstore"] = None
from tdbg_lab.run import open_run
try:
    open_run("s3://bucket/x")
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"{MissingDependencyError.__name__} Runs on s3:// need obstore, which is not installed: "
        "pip install tdbg-lab[s3]\n"
    )


def test_objects_that_no_run_has_are_left_out(bucket, tmp_path, caplog):
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    training.end()
    send(spooled, bucket.options)
    for key in (".hidden/x", "rank-00000/.x", "a/b/c/d/e/f/g", "control/not-a-request"):
        bucket.write(f"first/{key}", b"x")
    bucket.write("first/rank-00000/stats-000009.arrows/0123456789abcdef-000000000000-000000000005", b"12345")
    caplog.set_level(logging.ERROR)
    run = open_run(bucket.url("first"), storage_options=bucket.options)
    assert run.last_step == 0
    assert not list((tmp_path / "mirror").rglob(".x"))
    assert caplog.records == []


def test_object_with_a_name_that_leads_out_is_said(bucket):
    bucket.write("first/run.json", b"{}")
    bucket.write("first/../../outside", b"x")
    with pytest.raises(RemoteError, match=r"has a name with '\.\.'.*: remove it"):
        open_run(bucket.url("first"), storage_options=bucket.options)


def test_secrets_are_in_no_file(bucket, tmp_path):
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    training.end()
    send(spooled, bucket.options)
    open_run(bucket.url("first"), storage_options=bucket.options)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"secret-of-the-test" in path.read_bytes()]
    assert not [key for key in bucket.names() if b"secret-of-the-test" in bucket.read(key)]


@pytest.mark.parametrize("bucket", PROVIDERS, indirect=True)
def test_objects_that_are_gone_are_deleted_without_complaint(bucket):
    objects = Objects(parse_url(bucket.url("first")), bucket.options)
    for key in ("a", "b"):
        objects.put(key, b"1")
    objects.delete(["gone", "a", "lost", "b"])
    assert bucket.names() == []
    assert objects.create("a", b"1")
    assert not objects.create("a", b"2")
    assert objects.get("a") == b"1"


@pytest.mark.parametrize("bucket", ["gs", "az"], indirect=True)
def test_missing_bucket_of_another_provider_is_said(bucket):
    place = f"{bucket.scheme}://nowhere"
    for ask in (open_run, list_runs):
        with pytest.raises(RemoteError, match=f"There is no bucket 'nowhere' \\({place}\\)"):
            ask(f"{place}/first", storage_options=bucket.options)
    with pytest.raises(RemoteError, match="There is no bucket 'nowhere'"):
        Objects(parse_url(f"{place}/first"), bucket.options).delete(["x"])


@pytest.mark.parametrize(
    ("text", "expected"), [("", 20 * 2**30), ("1000", 1000), ("20GB", 20 * 2**30), ("-1", 20 * 2**30)]
)
def test_bound_that_is_no_number_is_told_and_the_usual_one_taken(text, expected, monkeypatch, caplog):
    monkeypatch.setenv("TDBG_MIRROR_BYTES", text)
    assert byte_limit("TDBG_MIRROR_BYTES") == expected
    told = (
        []
        if expected == 1000 or not text
        else [f"TDBG_MIRROR_BYTES is {text!r}; expected a number of bytes. 21474836480 are taken."]
    )
    assert [record.getMessage() for record in caplog.records] == told


def test_bounds_that_are_no_numbers_remove_nothing(tmp_path, monkeypatch):
    for name in ("TDBG_MIRROR", "TDBG_SPOOL"):
        monkeypatch.setenv(name, str(tmp_path / name))
        monkeypatch.setenv(f"{name}_BYTES", "20GB")
    copy = tmp_path / "TDBG_MIRROR" / "s3" / "bucket" / "run"
    copy.mkdir(parents=True)
    (copy / LOCK).touch()
    os.utime(copy / LOCK, (0, 0))
    make_room(tmp_path)
    tidy()
    assert copy.exists()


def test_spool_with_very_many_runs_hides_none_that_waits_and_lets_old_ones_go(tmp_path, monkeypatch):
    """Such as a search over months leaves: those beyond ten thousand were neither seen nor sent."""
    monkeypatch.setattr(spool, "_MAX_RUNS", 2)
    moment = itertools.count(1)
    monkeypatch.setattr(spool.time, "time_ns", lambda: next(moment))
    for name in ("d", "b", "c", "z"):
        path = tmp_path / "spool" / "bucket" / name
        path.mkdir(parents=True)
        Spooled(path).set_place(parse_url(f"s3://bucket/{name}"), chief=True)
        Spooled(path).set_state(UploadState(done=name != "z"))
    monkeypatch.undo()
    monkeypatch.setattr(spool, "_MAX_RUNS", 2)
    monkeypatch.setenv("TDBG_SPOOL", str(tmp_path / "spool"))
    assert "z" in {one.name for one in unsent_runs()}
    tidy()
    assert [one.name for one in spooled_runs()] == ["c", "z"], "those sent longest ago go"


def test_user_without_a_home_is_told_what_to_set(monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "TDBG_SPOOL", "TDBG_STORAGE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _user: {}[0])  # as in a container with a made-up user
    with pytest.raises(ConfigError, match="no home directory to keep files in: set XDG_CACHE_HOME"):
        spool_path(parse_url("s3://bucket/run"))
    assert storage_options(parse_url("s3://bucket/run"), {}) is not None
    monkeypatch.setenv("TDBG_SPOOL", "~/spool")
    with pytest.raises(
        ConfigError, match="TDBG_SPOOL is '~/spool', and there is no such home directory: set"
    ):
        spool_path(parse_url("s3://bucket/run"))


def test_place_that_cannot_be_written_is_told_with_what_to_set(tmp_path, monkeypatch):
    """As a home directory in a container: the sentence was of the run alone, as if the bucket had refused."""
    (tmp_path / "file").touch()
    for name in ("TDBG_SPOOL", "TDBG_MIRROR"):
        monkeypatch.setenv(name, str(tmp_path / "file" / "below"))
    with pytest.raises(StoreError, match=r"file.below: Not a directory\. Set TDBG_SPOOL to a folder"):
        attach(store="s3://bucket/run", profiler=False)
    for read in (open_run, list_runs):
        with pytest.raises(StoreError, match="Set TDBG_MIRROR to a folder that can be written"):
            read("s3://bucket/run")
