"""The way of results from a device to the host, asked for without waiting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

__all__ = ["Transfer", "transfer_of"]

_POLL_S = 0.001
_current_stream: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001 - ten times quicker


class Transfer(Protocol):
    """Copies of one slot, one set at a time."""

    def follow(self) -> None:
        """Let what is queued from now on come after what was queued for the slot before."""

    def start(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Copy each (source, target), after everything queued for the slot so far; does not wait."""

    def arrived(self) -> bool:
        """Whether the copies are there. Asks no driver: safe from any thread, at any moment."""

    def wait(self, timeout_s: float) -> bool:
        """Wait until they are; whether they came in time.

        Raises
        ------
        RuntimeError
            The device has failed.
        """


def transfer_of(device: torch.device, stream: torch.cuda.Stream | None) -> Transfer:
    """The way that fits a device; `stream` is the one for copies, where it has streams."""
    return _PlainTransfer() if stream is None else _CudaTransfer(device, stream)


class _PlainTransfer:
    """Copies that wait: for devices without streams."""

    def follow(self) -> None:
        pass

    def start(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        for source, target in pairs:
            target.copy_(source)

    def arrived(self) -> bool:
        return True

    def wait(self, timeout_s: float) -> bool:  # noqa: ARG002
        return True


class _CudaTransfer:
    """Copies on a side stream, behind the event that ends the measuring.

    Last of all a flag in pinned memory is set, by the device itself. To ask CUDA whether an event has come
    would end, with an error, the capture of a graph that another thread may be about.
    """

    def __init__(self, device: torch.device, stream: torch.cuda.Stream) -> None:
        self._device = device
        self._stream = stream
        self._last: torch.cuda.Stream | None = None
        """Where something was queued for the slot last."""
        self._reached, self._measured, self._copied = (torch.cuda.Event() for _ in range(3))  # type: ignore[no-untyped-call]
        self._one = torch.ones(1, dtype=torch.int64, device=device)
        self._flag = torch.zeros(1, dtype=torch.int64, pin_memory=True)
        self._seen = self._flag.numpy()

    def follow(self) -> None:
        if self._last is not None and _current_stream(self._device.index) == self._last.cuda_stream:
            return
        current = torch.cuda.current_stream(self._device)
        if self._last is not None:
            self._reached.record(self._last)
            current.wait_event(self._reached)
        self._last = current

    def start(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        self.follow()
        self._seen[0] = 0
        self._measured.record(self._last)
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(self._measured)
            for source, target in pairs:
                target.copy_(source, non_blocking=True)
            self._flag.copy_(self._one, non_blocking=True)
            self._copied.record(self._stream)
        self._last = None  # the slot is used again only after the copies are there

    def arrived(self) -> bool:
        return bool(self._seen[0])

    def wait(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while not self._copied.query():  # type: ignore[no-untyped-call]
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True
