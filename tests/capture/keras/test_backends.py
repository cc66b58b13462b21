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

PATIENCE_S = 840
"""For all checks of a backend."""

pytestmark = pytest.mark.timeout(PATIENCE_S + 60)

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


def installed(backend: str) -> bool:
    return all(find_spec(needed) is not None for needed in ("keras", backend))


@cache
def results(backend: str) -> dict[str, str | None]:
    """What is wrong, by check; all checks are done by the first test of a backend."""
    root = HERE.parents[2]
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": os.pathsep.join([str(root), str(HERE)]),
    }
    command = [sys.executable, "-m", "checks"]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return dict.fromkeys(names(), f"the checks were not done after {PATIENCE_S} s")
    if done.returncode != 0:
        return dict.fromkeys(names(), done.stderr[-3000:])
    found: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", names())
def test_backend(backend: str, name: str) -> None:
    if not installed(backend):
        pytest.skip(f"keras or {backend} is not installed")
    result = results(backend)[name]
    if result == "skipped":
        pytest.skip(f"not for {backend}")
    assert result is None, result
