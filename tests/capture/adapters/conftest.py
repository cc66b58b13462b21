"""One thread, nothing left behind, no telemetry and no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from tdbg_lab.capture import open_handles

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Iterator[None]:
    torch.set_num_threads(1)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    yield
    for handle in open_handles():
        handle.detach()


@pytest.fixture
def hooks():
    """Count everything that hangs on a model and an optimizer."""

    def count(model, optimizer=None) -> int:
        found = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())
        if optimizer is not None:
            found += len(optimizer._optimizer_step_pre_hooks) + len(optimizer._optimizer_step_post_hooks)
        return found

    return count
