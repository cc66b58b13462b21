"""Buckets of three providers on loopback servers: their options, and what is in them.

``s3``: moto's server. ``az``: Azurite, Microsoft's own emulator. ``gs``: moto again - the XML interface of
Google Cloud Storage, which obstore speaks, is that of S3 but for some headers, which a proxy translates.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import urllib.request
import uuid
from email.utils import formatdate
from urllib.parse import quote
from xml.etree import ElementTree as ET

from tests.store.remote.faults import FaultyProxy

PROVIDERS = ("s3", "gs", "az")
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's, known to everybody."""

AUTHORIZED = "AWS4-HMAC-SHA256 Credential=id/20260101/us-east-1/s3/aws4_request, Signature=0"
"""Enough for moto, which does not look closely."""


class Bucket:
    """An S3 bucket: its options, and what is in it."""

    scheme = "s3"

    def __init__(self, host: str, port: int) -> None:
        import boto3

        self.name = f"runs{uuid.uuid4().hex[:8]}"
        self.server = (host, port)
        self._client = boto3.client(
            "s3",
            endpoint_url=f"http://{host}:{port}",
            aws_access_key_id="id",
            aws_secret_access_key="secret-of-the-test",
            region_name="us-east-1",
        )
        self._client.create_bucket(Bucket=self.name)

    @property
    def options(self) -> dict[str, object]:
        return self.options_at("http://{}:{}".format(*self.server))

    def options_at(self, address: str) -> dict[str, object]:
        return {
            "endpoint": address,
            "access_key_id": "id",
            "secret_access_key": "secret-of-the-test",
            "region": "us-east-1",
        }

    def url(self, path: str) -> str:
        return f"{self.scheme}://{self.name}/{path}"

    def names(self, prefix: str = "") -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return [each["Key"] for page in pages for each in page.get("Contents", [])]

    def read(self, key: str) -> bytes:
        return self._client.get_object(Bucket=self.name, Key=key)["Body"].read()

    def write(self, key: str, data: bytes) -> None:
        self._client.put_object(Bucket=self.name, Key=key, Body=data)

    def delete(self, key: str) -> None:
        self._client.delete_object(Bucket=self.name, Key=key)

    def through(self, proxy: FaultyProxy) -> dict[str, object]:
        """Options that lead through a proxy, with little patience."""
        return {
            **self.options_at(proxy.url),
            "client_options": {"allow_http": True, "timeout": "10s", "connect_timeout": "5s"},
        }

    def close(self) -> None:
        pass


class GoogleBucket(Bucket):
    """The same, spoken to as Google Cloud Storage is."""

    scheme = "gs"

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self._translator = FaultyProxy((host, port), translate=_as_s3)
        self.server = self._translator.address

    def options_at(self, address: str) -> dict[str, object]:
        key = {"gcs_base_url": address, "disable_oauth": True, "client_email": "", "private_key": ""}
        return {
            "service_account_key": json.dumps({**key, "private_key_id": ""}),
            "client_options": {"allow_http": True},
        }

    def close(self) -> None:
        self._translator.close()


def _as_s3(headers: dict[str, str]) -> dict[str, str]:
    """Headers of Google's XML interface as those of S3."""
    found = {name.lower(): value for name, value in headers.items()}
    found["authorization"] = AUTHORIZED
    if found.pop("x-goog-if-generation-match", None) == "0":
        found["if-none-match"] = "*"
    return found


class AzureContainer(Bucket):
    """A container of Azure Blob Storage."""

    scheme = "az"

    def __init__(self, host: str, port: int) -> None:
        self.name = f"runs{uuid.uuid4().hex[:8]}"
        self.server = (host, port)
        self._ask("PUT", "", {"restype": "container"})

    def options_at(self, address: str) -> dict[str, object]:
        return {
            "endpoint": f"{address}/{ACCOUNT}",
            "account_name": ACCOUNT,
            "account_key": ACCOUNT_KEY,
        }

    def names(self, prefix: str = "") -> list[str]:
        query = {"restype": "container", "comp": "list", "prefix": prefix}
        listed = ET.fromstring(self._ask("GET", "", {k: v for k, v in query.items() if v}))
        return [name.text for name in listed.iter("Name")]

    def read(self, key: str) -> bytes:
        return self._ask("GET", key)

    def write(self, key: str, data: bytes) -> None:
        self._ask("PUT", key, data=data)

    def delete(self, key: str) -> None:
        self._ask("DELETE", key)

    def _ask(self, method: str, key: str, query: dict[str, str] | None = None, data: bytes = b"") -> bytes:
        """One request, signed with the account's key."""
        path = f"/{ACCOUNT}/{self.name}/{quote(key)}".rstrip("/")
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
        if method == "PUT" and key:
            headers |= {"x-ms-blob-type": "BlockBlob"}
        kind = "application/octet-stream" if data else ""
        length = str(len(data)) if data else ""
        lines = [method, "", "", length, "", kind, *[""] * 6]
        lines += [f"{name}:{headers[name]}" for name in sorted(headers)]
        lines += [f"/{ACCOUNT}{path}", *(f"{name}:{value}" for name, value in sorted((query or {}).items()))]
        secret, text = base64.b64decode(ACCOUNT_KEY), "\n".join(lines).encode()
        signed = base64.b64encode(hmac.new(secret, text, hashlib.sha256).digest()).decode()
        more = "&".join(f"{name}={quote(value, safe='')}" for name, value in (query or {}).items())
        request = urllib.request.Request(
            "http://{}:{}".format(*self.server) + path + (f"?{more}" if more else ""),
            data=data or None,
            method=method,
            headers={**headers, "Authorization": f"SharedKey {ACCOUNT}:{signed}"},
        )
        if data:
            request.add_header("Content-Type", kind)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read()


def azurite_address(line: str) -> tuple[str, int] | None:
    """Where Azurite listens, from what it says."""
    match = re.search(r"successfully listens on http://([\d.]+):(\d+)", line)
    return (match[1], int(match[2])) if match else None
