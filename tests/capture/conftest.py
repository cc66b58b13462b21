"""Capture without companion processes, one thread, nothing left behind."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import torch

import tdbg_lab as tdbg
from tdbg_lab.capture import open_handles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


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
