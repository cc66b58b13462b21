from __future__ import annotations

import json

import pytest
from tornado.httpclient import HTTPClientError

from tests.server.conftest import Nothing, ReadOnly

RUN = "0123456789abcdef"
JOB = "0" * 32
ROUTES = [
    ("GET", "status"),
    ("GET", "runs"),
    ("GET", f"runs/{RUN}"),
    ("PATCH", f"runs/{RUN}"),
    ("DELETE", f"runs/{RUN}"),
    ("GET", f"runs/{RUN}/tensors"),
    ("GET", f"runs/{RUN}/steps"),
    ("GET", f"runs/{RUN}/rules"),
    ("GET", "rules"),
    ("POST", f"runs/{RUN}/rules/dead_relu/check"),
    ("POST", f"runs/{RUN}/fix"),
    ("POST", f"runs/{RUN}/stop"),
    ("GET", f"runs/{RUN}/settings"),
    ("POST", f"runs/{RUN}/settings"),
    ("POST", f"runs/{RUN}/profile"),
    ("GET", f"runs/{RUN}/profile"),
    ("POST", f"runs/{RUN}/report"),
    ("GET", f"jobs/{JOB}/report"),
    ("GET", "views"),
    ("POST", f"runs/{RUN}/views/scalars"),
    ("GET", f"jobs/{JOB}"),
    ("DELETE", f"jobs/{JOB}"),
    ("GET", "plotly/7.0.0/plotly.min.js"),
]
READING = {("POST", f"runs/{RUN}/views/scalars")}


def test_every_route_is_tried():
    import re

    from tdbg_lab.server.routes import all_handlers

    paths = {f"/tdbg/{path}" for _, path in ROUTES} | {"/tdbg/stream"}
    for pattern, _ in all_handlers():
        assert any(re.fullmatch(pattern, path) for path in paths), pattern


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_stranger_is_refused(jp_fetch, method, path):
    with pytest.raises(HTTPClientError) as caught:
        await jp_fetch(
            "tdbg", path, method=method, headers={"Authorization": ""}, allow_nonstandard_methods=True
        )
    assert caught.value.code == 403


async def test_stranger_gets_no_socket(jp_ws_fetch):
    with pytest.raises(HTTPClientError) as caught:
        await jp_ws_fetch("tdbg", "stream", headers={"Authorization": ""})
    assert caught.value.code == 403


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_user_without_rights_is_refused(jp_serverapp, tdbg_fetch, method, path):
    jp_serverapp.web_app.settings["authorizer"] = Nothing()
    code, answer = await tdbg_fetch(path, method=method, body=b"{}" if method == "PATCH" else None)
    assert code == 403
    assert "not authorized" in answer["message"]


async def test_user_without_rights_gets_no_socket(jp_serverapp, jp_ws_fetch):
    jp_serverapp.web_app.settings["authorizer"] = Nothing()
    with pytest.raises(HTTPClientError) as caught:
        await jp_ws_fetch("tdbg", "stream")
    assert caught.value.code == 403


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_reader_may_only_read(jp_serverapp, tdbg_fetch, method, path):
    jp_serverapp.web_app.settings["authorizer"] = ReadOnly()
    code, _ = await tdbg_fetch(path, method=method)
    assert (code != 403) == (method == "GET" or (method, path) in READING)


async def test_reader_may_listen(jp_serverapp, jp_ws_fetch):
    jp_serverapp.web_app.settings["authorizer"] = ReadOnly()
    socket = await jp_ws_fetch("tdbg", "stream")
    await socket.write_message(json.dumps({"type": "ping"}))
    assert json.loads(await socket.read_message()) == {"type": "pong"}
    socket.close()
