"""A real S3 server on loopback, a bucket of its own for each test, and folders that are nobody else's."""

from __future__ import annotations

import logging
import uuid

import psutil
import pytest

pytest.importorskip("obstore")
pytest.importorskip("moto.server")

from tests.store.remote.faults import FaultyProxy


@pytest.fixture(scope="session")
def s3_server():
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield host, port
    server.stop()


class Bucket:
    """An S3 bucket: its options, and what is in it."""

    def __init__(self, host: str, port: int) -> None:
        import boto3

        self.name = f"runs-{uuid.uuid4().hex[:8]}"
        self.server = (host, port)
        self.options = {
            "endpoint": f"http://{host}:{port}",
            "access_key_id": "id",
            "secret_access_key": "secret-of-the-test",
            "region": "us-east-1",
        }
        self._client = boto3.client(
            "s3",
            endpoint_url=self.options["endpoint"],
            aws_access_key_id="id",
            aws_secret_access_key="secret-of-the-test",
            region_name="us-east-1",
        )
        self._client.create_bucket(Bucket=self.name)

    def url(self, path: str) -> str:
        return f"s3://{self.name}/{path}"

    def names(self, prefix: str = "") -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return [each["Key"] for page in pages for each in page.get("Contents", [])]

    def read(self, key: str) -> bytes:
        return self._client.get_object(Bucket=self.name, Key=key)["Body"].read()

    def write(self, key: str, data: bytes) -> None:
        self._client.put_object(Bucket=self.name, Key=key, Body=data)

    def through(self, proxy: FaultyProxy) -> dict[str, object]:
        """Options that lead through a proxy, with little patience."""
        return {
            **self.options,
            "endpoint": proxy.url,
            "client_options": {"allow_http": True, "timeout": "10s", "connect_timeout": "5s"},
        }


@pytest.fixture
def bucket(s3_server, tmp_path, monkeypatch):
    monkeypatch.setenv("TDBG_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("TDBG_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setenv("TDBG_STORAGE_OPTIONS", "")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    yield Bucket(*s3_server)
    end_senders(str(tmp_path))


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
