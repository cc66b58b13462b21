"""Capture without companion processes, one thread, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

import tdbg_lab as tdbg
from tdbg_lab.capture import open_handles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(tdbg.__file__).parent.parent


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    for handle in open_handles():
        handle.detach()


@pytest.fixture
def attach(tmp_path: Path) -> Callable[..., tdbg.Handle]:
    return partial(tdbg.attach, store=tmp_path / "run", save_every=1, strict=True, profiler=False)


@pytest.fixture(scope="session")
def python_in() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``python`` on our sources, in a folder; keyword arguments go to its environment."""

    def python(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    return python


@pytest.fixture
def python(
    tmp_path: Path, python_in: Callable[..., subprocess.CompletedProcess[str]]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The same in the folder of the test."""
    return partial(python_in, tmp_path)
