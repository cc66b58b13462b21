"""JupyterLab in a process of its own, and trainings that write into its directory."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING

import psutil
from live import TRAINING

from chromium.cpu import cpu_s

if TYPE_CHECKING:
    from pathlib import Path


class Lab:
    """JupyterLab with the extension, on a free port, with `root` as its directory."""

    def __init__(self, root: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._token = secrets.token_hex(16)
        self._base = f"http://127.0.0.1:{port}"
        self.url = f"{self._base}/lab?token={self._token}"
        options = {
            "LabApp.expose_app_in_browser": True,
            "LabApp.workspaces_dir": root / ".workspaces",
            "LabApp.user_settings_dir": root / ".settings",
            "LabApp.news_url": None,
            "ServerApp.allow_root": True,
            "ServerApp.open_browser": False,
            "ServerApp.port": port,
            "ServerApp.port_retries": 0,
            "ServerApp.root_dir": root,
            "IdentityProvider.token": self._token,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait()

    def run_id(self, name: str) -> str:
        """The id of a run, as soon as the server knows it."""
        for _ in range(300):
            for run in self._get("runs")["runs"]:
                if run["name"] == name:
                    return run["id"]
            time.sleep(0.1)
        raise SystemExit(f"The run {name} did not appear.")

    def memory(self) -> dict[str, float]:
        """Resident memory of the server and of the processes it started, MB."""
        server = psutil.Process(self._process.pid)
        children = [each.memory_info().rss for each in server.children(recursive=True)]
        return {"server": server.memory_info().rss / 1e6, "children": sum(children) / 1e6}

    def cpu_s(self) -> float:
        """Processor time of the server so far."""
        return cpu_s(self._process.pid)

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _get(self, path: str):
        request = urllib.request.Request(
            f"{self._base}/tdbg/{path}", headers={"Authorization": f"token {self._token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def _wait(self) -> None:
        for _ in range(600):
            try:
                self._get("status")
            except OSError:
                if self._process.poll() is not None:
                    raise SystemExit("JupyterLab did not start: is the extension installed here?") from None
                time.sleep(0.1)
            else:
                return
        raise SystemExit("JupyterLab did not answer within a minute.")


class Training:
    """The training of ``live.py``: `rate` steps a second, every one saved, once `start` is called.

    The first `ahead` steps are written as fast as can be.
    """

    def __init__(self, path: Path, *, steps: int, rate: float, ahead: int = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", TRAINING, str(path), str(steps), str(rate), str(ahead)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        if self._process.stdout.readline() != "ready\n":
            raise SystemExit("The training did not start.")

    def start(self) -> None:
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def cpu_s(self) -> float:
        """Processor time of the training so far."""
        return cpu_s(self._process.pid)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
