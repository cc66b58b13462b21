"""What tests of capture on a GPU share: a stand-in for one, and a watch that nothing waits for a real one."""

from __future__ import annotations

import contextlib
import threading
import warnings
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Gate", "no_waiting"]


@contextlib.contextmanager
def no_waiting() -> Iterator[None]:
    """What waits for the device in here fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this is a prototype
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")


class Gate:
    """A `tdbg_lab.stats.transfers.Transfer` that has arrived only when it is told so."""

    def __init__(self, opened: threading.Event | None = None) -> None:
        self.opened = opened or threading.Event()

    def follow(self) -> None:
        """There is one order only."""

    def start(self, pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Copy now, and say nothing."""
        for source, target in pairs:
            target.copy_(source)

    def arrived(self) -> bool:
        """Whether it was told so."""
        return self.opened.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Wait until somebody tells."""
        return self.opened.wait(timeout_s)
