"""Ask every verb of every route of a real server without a token: each must be refused.

The server's own safety nets are off (``allow_unauthenticated_access``, no XSRF check), so that what
refuses is the decorators of our routes. Exits 1 when any answer is not 401, 403 or 405.
"""

from __future__ import annotations

import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

from tdbg_lab.server.routes import all_handlers

VERBS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
REFUSED = {401, 403, 405}
EXAMPLES = {
    "run_id": "0123456789abcdef",
    "job": "0" * 32,
    "view": "scalars",
    "rule": "dead_relu",
    "wanted": "7.0.0",
}
START_S = 60.0
SOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def example(pattern: str) -> str:
    """A path that `pattern` matches."""
    path = re.sub(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)", lambda match: EXAMPLES[match[1]], pattern)
    path = path.replace("\\.", ".")
    if not re.fullmatch(pattern, path):
        raise SystemExit(f"check_auth does not know a path for {pattern}; add its parts to EXAMPLES.")
    return path


def start(port: int, token: str, root: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """A server with our extension."""
    options = {
        "ServerApp.jpserver_extensions": "{'tdbg_lab': True}",
        "ServerApp.allow_unauthenticated_access": "True",
        "ServerApp.disable_check_xsrf": "True",
        "ServerApp.allow_root": "True",
        "ServerApp.open_browser": "False",
        "ServerApp.port": str(port),
        "ServerApp.port_retries": "0",
        "ServerApp.root_dir": root,
        "ServerApp.log_level": "ERROR",
        "IdentityProvider.token": token,
    }
    arguments = [f"--{name}={value}" for name, value in options.items()]
    return subprocess.Popen([sys.executable, "-m", "jupyter_server", *arguments], stdout=log, stderr=log)


def ask(url: str, verb: str, headers: dict[str, str]) -> int:
    """Status of the answer; redirects are not followed."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_args: object) -> None:
            return None

    request = urllib.request.Request(url, method=verb, headers=headers)
    try:
        with urllib.request.build_opener(Stay).open(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def wait_for(url: str, server: subprocess.Popen[bytes], token: str) -> None:
    """Wait until the server answers somebody with a token: the extension is loaded."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            status = ask(url, "GET", {"Authorization": f"token {token}"})
        except OSError:
            time.sleep(0.2)
            continue
        if status == 200:
            return
        raise SystemExit(f"{url} answers {status} to a user with a token.")
    raise SystemExit("The server did not start.")


def check(base: str) -> list[str]:
    """What was not refused."""
    open_doors = []
    for pattern, _ in all_handlers():
        path = example(pattern)
        for verb in VERBS:
            for headers in ({}, SOCKET) if path.endswith("/stream") and verb == "GET" else ({},):
                status = ask(base + path, verb, dict(headers))
                if status not in REFUSED:
                    open_doors.append(f"{verb} {path} answers {status} without a token")
    return open_doors


def main() -> None:
    """Start, ask, stop."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    base = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as root:
        log_path = Path(root) / "server.log"
        with log_path.open("wb") as log:
            server = start(port, token, root, log)
            try:
                wait_for(f"{base}/tdbg/status", server, token)
                open_doors = check(base)
            except SystemExit:
                print(log_path.read_text(errors="replace"))
                raise
            finally:
                server.terminate()
                server.wait(timeout=20)
    for door in open_doors:
        print(door)
    if open_doors:
        raise SystemExit(1)
    print(f"{len(all_handlers())} routes refuse strangers")


if __name__ == "__main__":
    main()
