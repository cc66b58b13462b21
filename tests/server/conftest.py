"""A real Jupyter server with the extension, and run directories under its root."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from jupyter_server.auth.authorizer import Authorizer
from pytest_jupyter.jupyter_server import *  # noqa: F403 - fixtures and hooks, for this folder only
from tornado.httpclient import HTTPClientError

from tdbg_lab.testing import fake_run


@pytest.fixture
def tdbg_config():
    """Overridden by tests that need other settings of the extension."""
    return {}


@pytest.fixture
def jp_server_config(tdbg_config):
    return {
        "ServerApp": {
            "jpserver_extensions": {"tdbg_lab": True, "jupyter_server_terminals": False},
            "allow_unauthenticated_access": False,
        },
        "TdbgApp": {"close_delay_s": 0.2, "poll_interval_s": 0.2, **tdbg_config},
    }


@pytest.fixture
def root(jp_root_dir) -> Path:
    """The only run root."""
    return Path(jp_root_dir)


@pytest.fixture
def run_path(root) -> Path:
    """A finished run."""
    return fake_run(root / "runs" / "first", steps=30, layers=2)


@pytest.fixture
def tdbg_fetch(jp_fetch):
    """Fetch JSON below ``tdbg/``; answers status and value, also of errors."""

    async def fetch(*parts, method="GET", body=None, params=None, **kwargs):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body)
        try:
            response = await jp_fetch(
                "tdbg",
                *parts,
                method=method,
                body=body,
                params=params,
                allow_nonstandard_methods=True,
                **kwargs,
            )
        except HTTPClientError as error:
            response = error.response
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        return response.code, json.loads(response.body) if response.body and is_json else None

    return fetch


@pytest.fixture
def run_id(tdbg_fetch, run_path):
    """Id of `run_path`, as the list tells it."""

    async def find(name="first"):
        _, answer = await tdbg_fetch("runs")
        return next(run["id"] for run in answer["runs"] if run["name"] == name)

    return find


class ReadOnly(Authorizer):
    """Nobody may do more than read."""

    def is_authorized(self, handler, user, action, resource):
        return action == "read" and resource == "tdbg"


class Nothing(Authorizer):
    """Nobody may do anything."""

    def is_authorized(self, handler, user, action, resource):
        return False


@pytest.fixture
def tdbg_socket(jp_ws_fetch):
    """Open a socket, closed at the end of a block."""

    @asynccontextmanager
    async def connect():
        socket = await jp_ws_fetch("tdbg", "stream")
        try:
            yield Client(socket)
        finally:
            socket.close()

    return connect


class Client:
    """One end of a socket, in JSON."""

    def __init__(self, socket):
        self.socket = socket

    async def send(self, **message):
        await self.socket.write_message(json.dumps(message))

    async def receive(self, timeout_s=10.0):
        text = await asyncio.wait_for(self.socket.read_message(), timeout_s)
        return None if text is None else json.loads(text)

    async def until(self, accept):
        while True:
            message = await self.receive()
            assert message is not None, "the socket was closed"
            if accept(message):
                return message
