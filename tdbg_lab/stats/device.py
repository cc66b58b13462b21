"""Measuring on a device without waiting for it: `DeviceBuffer`.

What is measured until `DeviceBuffer.send` lies in one slot on the device: partials, histograms, channels,
numbers. When the device has filled it, a side stream copies it to pinned memory, while the next steps
run; the `Ticket` says when it has arrived. Triton kernels do the measuring on CUDA, torch operations
elsewhere.
"""

from __future__ import annotations

import ctypes
import logging
import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tdbg_lab.stats.block import empty_block
from tdbg_lab.stats.gather import sentence, take_apart
from tdbg_lab.stats.layouts import ordinary_memory
from tdbg_lab.stats.slot import Slot, countable
from tdbg_lab.stats.transfers import transfer_of
from tdbg_lab.stats.triton_kernels import triton_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from tdbg_lab.records import StatsBlock
    from tdbg_lab.stats.gather import Layout
    from tdbg_lab.stats.layouts import Part

__all__ = ["DeviceBuffer", "Results", "Ticket", "summarize_on_device"]

log = logging.getLogger(__name__)

_LONG_S = 60.0
_MOST_BYTES = 1 << 25
"""Copies of tensors that are sent together: each slot has that room on the device and on the host."""
_FAILED = "Measuring on %s failed."
_NOTHING: AbstractContextManager[Any] = nullcontext()


class Results(NamedTuple):
    """What a device has given."""

    block: StatsBlock
    numbers: NDArray[np.float64]
    """None where they are lost."""
    values: NDArray[np.uint8]
    """Copies of tensors, as bytes; none where they are lost."""


class Ticket:
    """What was sent at one time, on its way from the device."""

    def __init__(self, slot: Slot, buffer: DeviceBuffer) -> None:
        self._slot: Slot | None = slot
        self._buffer = buffer
        self._results: Results | None = None

    def arrived(self) -> bool:
        """Whether it can be read. Asks no driver: safe from any thread, at any moment."""
        slot = self._slot
        return slot is None or slot.lost or slot.transfer.arrived()

    def wait(self, timeout_s: float = _LONG_S) -> None:
        """Wait until it has arrived. What the device does not give in time, or at all, is not known."""
        slot = self._slot
        if slot is None or slot.lost:
            return
        try:
            if not slot.transfer.wait(timeout_s):
                slot.lose(f"the device did not answer within {timeout_s:g} s")
        except Exception as error:  # noqa: BLE001 - the device has failed, which the training is told itself
            slot.lose(sentence(error))

    def read(self) -> Results:
        """What has arrived; the same each time. Of several threads one reads."""
        slot, self._slot = self._slot, None
        if slot is not None:
            self._results = Results(slot.block(), slot.numbers(), slot.values())
            if slot.lost:  # the device may still write to it
                _keep(slot)
                _keep(self._buffer)
            else:
                self._buffer.give_back(slot)
        assert self._results is not None  # noqa: S101 - it was read
        return self._results


class DeviceBuffer:
    """Measures what lies on one device, while training goes on.

    `add` queues the measuring on the current stream, so that the tensors may change or go right after it,
    and returns at once; `send` queues the way to the host of all that was added since the last time. When
    all slots are on their way, what is added is dropped rather than waited for.

    Parameters
    ----------
    device : torch.device or str
        Where the tensors lie. Tensors of other devices get a row with a reason.
    slots : int
        Sets of results on their way at most.
    triton : bool, optional
        Use the Triton kernels; by default where they can run.

    Examples
    --------
    >>> buffer = DeviceBuffer("cuda")
    >>> buffer.add([model.weight])
    >>> ticket = buffer.send()
    >>> ticket.wait()
    >>> block = ticket.read().block
    """

    def __init__(self, device: torch.device | str, *, slots: int = 16, triton: bool | None = None) -> None:
        self.device = torch.device(device)
        stream = None
        if self.device.type == "cuda":
            self.device = _indexed(self.device)
            stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        self.dropped = 0
        """Tensors and numbers that found no free slot."""
        self._index = -1 if stream is None else self.device.index
        self._stream = stream
        self._triton = triton
        self._told = False
        """Whether a failure was told."""
        self._lock = threading.Lock()
        self._to_make = slots
        self._free: list[Slot] = []
        self._open: Slot | None = None

    def add(self, tensors: Sequence[Tensor], channel_axes: Sequence[int | None] | None = None) -> int | None:
        """Measure tensors, which may change or go right after the call. Never raises.

        Parameters
        ----------
        tensors, channel_axes
            As for `tdbg_lab.stats.tensors.summarize_tensors`.

        Returns
        -------
        The row that the first one will have; None when they were dropped.
        """
        slot = self._slot(len(tensors))
        if slot is None:
            return None
        if slot.error:
            return slot.refuse(len(tensors), slot.error)
        tables = self._usable_tables()
        first, axes = slot.rows, channel_axes or (None,) * len(tensors)
        if tables is not None and self._add_ordinary(slot, tensors, axes, tables):
            return first
        try:
            parts, layout = take_apart(tensors, axes)
            parts = self._only_here(parts, layout)
        except Exception as error:
            log.debug(_FAILED, self.device, exc_info=True)
            return slot.refuse(len(tensors), sentence(error))
        try:
            with torch.no_grad(), self._current():
                slot.add(parts, layout, tables)
        except Exception as error:  # noqa: BLE001
            self._failed(slot, error, tables)
        return first

    def _add_ordinary(
        self, slot: Slot, tensors: Sequence[Tensor], axes: Sequence[int | None], tables: Tensor
    ) -> bool:
        """`add` without a detour, if all tensors are contiguous memory of this device, as most are."""
        try:
            memories = []
            for tensor, axis in zip(tensors, axes, strict=True):
                memory = ordinary_memory(tensor, axis) if tensor.get_device() == self._index else None
                if memory is None or not countable(memory):
                    return False
                memories.append(memory)
        except Exception:  # noqa: BLE001 - whatever it is, it is not ordinary
            return False
        try:
            with self._current():
                slot.add_ordinary(memories, tables)
        except Exception as error:  # noqa: BLE001
            self._failed(slot, error, tables)
        return True

    def _failed(self, slot: Slot, error: Exception, tables: Tensor | None) -> None:
        """Nothing of the slot is known now; if the kernels may be why, they are not called again."""
        log.log(logging.DEBUG if self._told else logging.WARNING, _FAILED, self.device, exc_info=error)
        self._told = True
        slot.error = sentence(error)
        if tables is not None and not isinstance(error, torch.cuda.OutOfMemoryError):
            triton_kernels().broken = True

    def _usable_tables(self) -> Tensor | None:
        """What the Triton kernels read; None where they cannot be called now."""
        kernels = triton_kernels()
        wanted = self._index >= 0 and kernels.usable() if self._triton is None else self._triton
        return kernels.tables(self.device) if wanted else None

    def add_numbers(self, values: Tensor) -> int | None:
        """Take real numbers that lie on the device along, as float64.

        Returns
        -------
        The place that the first one will have; None when they were dropped.
        """
        slot = self._slot(values.numel())
        if slot is None:
            return None
        with torch.no_grad(), self._current():
            return slot.add_numbers(values)

    def add_values(self, tensor: Tensor) -> int | None:
        """Take a copy of a contiguous tensor along, as it is.

        Returns
        -------
        The place that its first byte will have; None when there is no room for it.
        """
        slot = self._slot(0)
        if slot is None or slot.value_bytes + tensor.numel() * tensor.itemsize > _MOST_BYTES:
            return None
        with torch.no_grad(), self._current():
            return slot.add_values(tensor)

    def send(self) -> Ticket | None:
        """Queue the way to the host of what was added; None when nothing was."""
        slot, self._open = self._open, None
        if slot is None:
            return None
        try:
            with self._current():
                slot.send()
        except Exception as error:  # noqa: BLE001 - a device that has failed
            slot.lose(slot.error or sentence(error))
        return Ticket(slot, self)

    def give_back(self, slot: Slot) -> None:
        """A slot was read, and can be filled again."""
        slot.clear()
        with self._lock:
            self._free.append(slot)

    def _slot(self, wanted: int) -> Slot | None:
        """The slot that is being filled; None when all are on their way."""
        if self._open is None:
            with self._lock:
                if self._free:
                    self._open = self._free.pop()
                elif self._to_make:
                    self._to_make -= 1
                    self._open = Slot(self.device, transfer_of(self.device, self._stream))
                else:
                    self.dropped += wanted
        return self._open

    def _current(self) -> AbstractContextManager[Any]:
        """Make this device the current one, as Triton wants it."""
        if self._index < 0 or torch.cuda.current_device() == self._index:
            return _NOTHING
        return torch.cuda.device(self.device)

    def _only_here(self, parts: list[Part], layout: Layout) -> list[Part]:
        """The parts on this device; the tensors of the others get a reason."""
        if all(part.values.device == self.device for part in parts):
            return parts
        for part, owner in zip(parts, layout.owners, strict=True):
            if part.values.device != self.device:
                layout.reasons[owner] = f"on {part.values.device}, not on {self.device}"
        kept = [i for i, owner in enumerate(layout.owners) if owner not in layout.reasons]
        layout.owners = [layout.owners[i] for i in kept]
        layout.zeros = [entry for entry in layout.zeros if entry[0] not in layout.reasons]
        return [parts[i] for i in kept]


def summarize_on_device(parts: Sequence[Part]) -> StatsBlock:
    """Statistics of dense parts on one device, one row each. Waits for it."""
    buffer, turn = _shared(parts[0].values.device)
    with turn:
        known = buffer.add([part.values for part in parts], [part.axis for part in parts]) is not None
        ticket = buffer.send()
        if not known or ticket is None:
            return empty_block(len(parts), f"{buffer.device} has failed before")
        ticket.wait()
        return ticket.read().block


@cache
def _shared(device: torch.device) -> tuple[DeviceBuffer, threading.Lock]:
    """The buffer of a device for those who wait, one at a time."""
    return DeviceBuffer(device, slots=1), threading.Lock()


def _keep(one: Slot | DeviceBuffer) -> None:
    """Let something live until the process ends.

    A device has failed. To free memory that it was told to write to would ask it whether it has done so,
    which PyTorch answers by ending the process, in the middle of the training's own error.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


def _indexed(device: torch.device) -> torch.device:
    """A CUDA device by its number: tensors never say ``cuda`` alone."""
    return torch.device("cuda", torch.cuda.current_device()) if str(device) == "cuda" else device
