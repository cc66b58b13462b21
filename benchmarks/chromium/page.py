"""The Chromium: a Node process that is told what to do by JSON lines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from chromium.cpu import cpu_s

_SCRIPT = Path(__file__).parent / "page.mjs"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Page:
    """A page of JupyterLab. What may be done with it is listed in ``page.mjs``."""

    def __init__(self) -> None:
        root = _SCRIPT.parents[2]
        if not (root / "ui-tests" / "node_modules").is_dir():
            raise SystemExit("Playwright was not found in ui-tests/node_modules: run scripts/ui-test --list.")
        named = os.environ.get("CHROMIUM")
        browser = named or next((found for name in _BROWSERS if (found := shutil.which(name))), None)
        if browser is None:
            raise SystemExit(
                "No Chromium was found: install it, or name one with CHROMIUM=/path/to/chromium."
            )
        self._process = subprocess.Popen(
            ["node", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "CHROMIUM": browser},
        )

    def do(self, what: str, **more):
        """Do one thing and wait for its answer."""
        self._process.stdin.write(json.dumps({"do": what, **more}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("The browser is gone.")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{what}: {answer['error']}")
        return answer["answer"]

    def cpu_s(self) -> float:
        """Processor time of the browser so far."""
        return cpu_s(self._process.pid)

    def close(self) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
