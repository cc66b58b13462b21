"""A proxy in front of an HTTP server that makes things go wrong, at random with a seed."""

from __future__ import annotations

import http.client
import random
import re
import socket
import socketserver
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

UNAVAILABLE = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


class FaultyProxy:
    """Forwards to `target`. `shares` says how often each fault happens: a number from 0 to 1 by name.

    ``unavailable`` answers 503; ``reset`` cuts the connection before the request is passed on; ``lost``
    passes it on and cuts the connection before the answer; ``stalled`` keeps silent for a while and
    then cuts; ``slow`` answers in small pieces. `down` cuts everything; `denied` answers 403, to all requests
    or to those in which the expression is found. `translate` changes the headers that are passed on.
    """

    def __init__(
        self,
        target: tuple[str, int],
        *,
        seed: int = 0,
        stall_s: float = 0.3,
        translate: Callable[[dict[str, str]], dict[str, str]] = dict,
        **shares: float,
    ):
        self.target = target
        self.translate = translate
        self.shares = shares
        self.stall_s = stall_s
        self.down = False
        self.denied: bool | str = False
        self.requests: list[str] = []
        self.faults: dict[str, int] = {}
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _handle(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                proxy._answer(self, body)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle

            def log_message(self, *arguments: object) -> None:
                pass

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 64

            def handle_error(self, request: object, client_address: object) -> None:
                pass  # cut connections are the point

        self._server = Server(("127.0.0.1", 0), Handler)
        self.address = self._server.server_address
        self.url = "http://{}:{}".format(*self.address)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _fault(self) -> str:
        with self._lock:
            at = self._random.random()
            for name, share in self.shares.items():
                at -= share
                if at < 0:
                    self.faults[name] = self.faults.get(name, 0) + 1
                    return name
        return ""

    def _answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        request = f"{handler.command} {handler.path}"
        self.requests.append(request)
        denied = self.denied if isinstance(self.denied, bool) else re.search(self.denied, request)
        fault = "reset" if self.down else "denied" if denied else self._fault()
        if fault == "reset":
            return self._cut(handler)
        if fault == "stalled":
            time.sleep(self.stall_s)
            return self._cut(handler)
        if fault in {"unavailable", "denied"}:
            text = UNAVAILABLE if fault == "unavailable" else DENIED
            return self._reply(handler, 503 if fault == "unavailable" else 403, [], text)
        status, headers, data = self._forward(handler, body)
        if fault == "lost":
            return self._cut(handler)
        return self._reply(handler, status, headers, data, slow=fault == "slow")

    def _forward(self, handler, body):
        connection = http.client.HTTPConnection(*self.target, timeout=30)
        headers = self.translate({k: v for k, v in handler.headers.items() if k.lower() != "connection"})
        connection.request(handler.command, handler.path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, answer.getheaders(), data

    def _reply(self, handler, status, headers, data, *, slow=False):
        handler.send_response(status)
        for name, value in headers:
            if name.lower() not in {"content-length", "transfer-encoding", "connection", "date", "server"}:
                handler.send_header(name, value)
        length = len(data)
        if handler.command == "HEAD":
            length = int(dict(headers).get("Content-Length", 0))
        handler.send_header("Content-Length", str(length))
        handler.end_headers()
        if handler.command == "HEAD":
            return
        if not slow:
            handler.wfile.write(data)
            return
        size = max(len(data) // 4, 1)
        for at in range(0, len(data), size):
            handler.wfile.write(data[at : at + size])
            handler.wfile.flush()
            time.sleep(0.02)

    def _cut(self, handler) -> None:
        handler.close_connection = True
        linger = struct.pack("ii", 1, 0)  # a reset, not an orderly end
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        handler.connection.close()
