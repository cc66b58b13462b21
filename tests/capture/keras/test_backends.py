"""Every check of `checks`, on each backend of Keras, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(900)  # the first test of a backend waits for all checks of it

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
def running() -> dict[str, subprocess.Popen[str]]:
    """All backends at once: most of the time goes into compilers that use one core."""
    return {backend: started(backend) for backend in BACKENDS if installed(backend)}


def installed(backend: str) -> bool:
    return all(find_spec(needed) is not None for needed in ("keras", backend))


def started(backend: str) -> subprocess.Popen[str]:
    root = HERE.parents[2]
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": os.pathsep.join([str(root), str(HERE)]),
    }
    command = [sys.executable, "-m", "checks"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


@pytest.fixture(scope="module", autouse=True)
def _end() -> Iterator[None]:
    yield
    for process in running().values() if running.cache_info().currsize else ():
        process.kill()
        process.communicate()


@cache
def results(backend: str) -> dict[str, str | None]:
    process = running()[backend]
    out, err = process.communicate(timeout=840)
    assert process.returncode == 0, err[-3000:]
    found: dict[str, str | None] = json.loads(out.splitlines()[-1])
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
