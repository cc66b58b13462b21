"""Real servers on loopback, a bucket of its own for each test, and folders that are nobody else's."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import threading
from pathlib import Path

import psutil
import pytest

pytest.importorskip("obstore")
pytest.importorskip("moto.server")

from tests.store.remote.buckets import AzureContainer, Bucket, GoogleBucket, azurite_address
from tests.store.remote.faults import FaultyProxy

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _no_profiles(tmp_path, monkeypatch):
    """Whoever runs the tests may have signed in with the AWS command line."""
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def s3_server():
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield host, port
    server.stop()


@pytest.fixture(scope="session")
def azurite():
    """Microsoft's emulator, from the node_modules of the tests."""
    places = os.pathsep.join([str(ROOT / "tests/node_modules/.bin"), os.environ["PATH"]])
    command = shutil.which("azurite-blob", path=places)
    if command is None or shutil.which("node") is None:
        pytest.skip("Azurite is not installed: npm ci in tests/")
    options = ["--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence"]
    options += ["--skipApiVersionCheck", "--disableTelemetry", "--disableProductStyleUrl"]
    server = subprocess.Popen([command, *options], stdout=subprocess.PIPE, text=True)
    address = next((found for line in server.stdout if (found := azurite_address(line))), None)
    assert address is not None, "Azurite ended at once"
    threading.Thread(target=server.stdout.read, daemon=True).start()
    yield address
    server.kill()
    server.wait()


@pytest.fixture
def bucket(request, tmp_path, monkeypatch):
    """A bucket on S3; of another provider where a test is parametrized with one."""
    monkeypatch.setenv("TDBG_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("TDBG_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setenv("TDBG_STORAGE_OPTIONS", "")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    provider = getattr(request, "param", "s3")
    made = {"s3": Bucket, "gs": GoogleBucket, "az": AzureContainer}[provider]
    found = made(*request.getfixturevalue("azurite" if provider == "az" else "s3_server"))
    yield found
    end_senders(str(tmp_path))
    found.close()


def end_senders(folder: str) -> None:
    """End the processes that still send runs of one test: nobody will hear them."""
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if "tdbg_lab.store.remote" in command and any(folder in part for part in command):
            process.kill()
            psutil.wait_procs([process], timeout=20)


@pytest.fixture
def proxy(bucket):
    made = FaultyProxy(bucket.server, seed=11)
    yield made
    made.close()
