"""A run that a test makes, and runners in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from .made import Made

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run")


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen]]:
    started: list[subprocess.Popen] = []

    def start(path: Path, *options: str, stdin: bytes | None = None) -> subprocess.Popen:
        command = [sys.executable, "-m", "tdbg_lab.rules", str(path), *options]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        assert process.stdin is not None
        process.stdin.write(stdin or b"")
        process.stdin.close()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
