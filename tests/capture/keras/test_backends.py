"""Every check of `checks`, on each backend of Keras, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BACKENDS = ("torch", "tensorflow", "jax")


def names() -> list[str]:
    found = []
    for path in sorted((HERE / "checks").glob("*.py")):
        found += [
            line[4 : line.index("(")]
            for line in path.read_text().splitlines()
            if line.startswith("def check_")
        ]
    return found


@cache
def results(backend: str) -> dict[str, str | None]:
    root = HERE.parents[2]
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": os.pathsep.join([str(root), str(HERE)]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "checks"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", names())
def test_backend(backend: str, name: str) -> None:
    for needed in ("keras", backend):
        if find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    result = results(backend)[name]
    if result == "skipped":
        pytest.skip(f"not for {backend}")
    assert result is None, result
