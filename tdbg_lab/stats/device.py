"""Measuring on a device without waiting for it: `DeviceBuffer`.

The results of a call lie in one buffer on the device: partials, histograms, channels. When the device
has filled it, a side stream copies it to pinned memory, while the next steps run; `poll` picks up
what has arrived. Triton kernels do the measuring on CUDA, torch operations elsewhere.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from tdbg_lab.stats import torch_ops
from tdbg_lab.stats.bins import N_BINS
from tdbg_lab.stats.block import empty_block
from tdbg_lab.stats.dtypes import float8_tables
from tdbg_lab.stats.gather import Layout, sentence, take_apart
from tdbg_lab.stats.layouts import memory_of
from tdbg_lab.stats.partials import COLUMNS, block_from_partials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from tdbg_lab.records import StatsBlock
    from tdbg_lab.stats.layouts import Part

__all__ = ["DeviceBuffer", "has_triton", "summarize_on_device"]

log = logging.getLogger(__name__)


def has_triton(device: torch.device) -> bool:
    """Whether the Triton kernels can run on a device."""
    return device.type == "cuda" and find_spec("triton") is not None


class Transfer(Protocol):
    """The way of results from the device to the host."""

    def start(self, source: Tensor, target: Tensor) -> None:
        """Copy, after everything queued on the device so far; does not wait."""

    def done(self) -> bool:
        """Whether the copy has arrived; does not wait."""

    def wait(self) -> None:
        """Wait until it has."""


class _PlainTransfer:
    """A copy that waits: for devices without streams."""

    def start(self, source: Tensor, target: Tensor) -> None:
        target.copy_(source)

    def done(self) -> bool:
        return True

    def wait(self) -> None:
        pass


class _CudaTransfer:
    """A copy on a side stream, behind the event that ends the measuring."""

    def __init__(self, stream: torch.cuda.Stream) -> None:
        self._stream = stream
        self._measured = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def start(self, source: Tensor, target: Tensor) -> None:
        self._measured.record(torch.cuda.current_stream(source.device))
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(self._measured)
            target.copy_(source, non_blocking=True)
            self._copied.record(self._stream)

    def done(self) -> bool:
        return bool(self._copied.query())  # type: ignore[no-untyped-call]

    def wait(self) -> None:
        self._copied.synchronize()


@dataclass(slots=True)
class _Sizes:
    """What one call leaves in a buffer."""

    rows: np.ndarray[Any, np.dtype[np.int64]]
    """Part that each partial belongs to, ``(P,)``."""
    n_parts: int
    widths: list[int]
    """Channels of each part."""

    @property
    def bounds(self) -> tuple[int, int, int]:
        """Ends of partials, histograms and channels, in bytes."""
        partials = len(self.rows) * len(COLUMNS) * 8
        hist = partials + self.n_parts * N_BINS * 4
        return partials, hist, hist + sum(self.widths) * 8

    def views(self, buffer: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """``(P, 10) float64`` partials, ``(parts, 2048) int32`` histograms, ``(2 * C,) float32`` channels."""
        partials, hist, end = self.bounds
        return (
            buffer[:partials].view(torch.float64).view(-1, len(COLUMNS)),
            buffer[partials:hist].view(torch.int32).view(-1, N_BINS),
            buffer[hist:end].view(torch.float32),
        )


class _Slot:
    """Buffers of one call on the device and on the host. In use until its copy has arrived."""

    def __init__(self, device: torch.device, transfer: Transfer, tables: Tensor | None) -> None:
        self._device = device
        self._tables = tables
        self._transfer = transfer
        self._on_device = torch.empty(0, dtype=torch.uint8, device=device)
        self._on_host = torch.empty(0, dtype=torch.uint8)
        self._table = torch.empty(0, dtype=torch.int64, device=device)
        self._host_table = torch.empty(0, dtype=torch.int64)
        self._sizes = _Sizes(np.zeros(0, np.int64), 0, [])
        self._layout = Layout(0)
        self.tag: Any = None
        self.done, self.wait = transfer.done, transfer.wait

    def fill(self, parts: Sequence[Part], layout: Layout, tag: Any) -> None:
        """Queue the measuring of parts that lie on the device, and the copy of the results."""
        self.tag, self._layout = tag, layout
        if self._tables is not None:
            self._fill_by_triton(parts, self._tables)
        else:
            self._fill_by_torch(parts)
        end = self._sizes.bounds[2]
        self._transfer.start(self._on_device[:end], self._on_host[:end])

    def _fill_by_triton(self, parts: Sequence[Part], tables: Tensor) -> None:
        from tdbg_lab.stats import cuda

        chunks = cuda.plan([memory_of(part.values, None) for part in parts])
        widths = [_width(part) for part in parts]
        partials, hist, channels = self._reserve(_Sizes(chunks.rows, len(parts), widths))
        table = self._send(chunks.table)
        hist.zero_()
        cuda.launch(chunks, table, tables, partials, hist)
        at = 0
        for part, width in zip(parts, widths, strict=True):
            if width:
                found = torch_ops.channel_statistics(part.values, part.axis)
                assert found is not None  # noqa: S101 - it has channels
                channels[at : at + 2 * width].copy_(found.view(-1))
                at += 2 * width

    def _fill_by_torch(self, parts: Sequence[Part]) -> None:
        queued = torch_ops.queue([part.values for part in parts], [part.axis for part in parts])
        widths = [_width(part) for part in parts]
        partials, hist, channels = self._reserve(
            _Sizes(np.asarray(queued.rows, np.int64), len(parts), widths)
        )
        partials.copy_(queued.partials)
        hist.copy_(queued.hist)
        pairs = [pair.view(-1) for pair in queued.channels if pair is not None]
        if pairs:
            channels.copy_(torch.cat(pairs))

    def _reserve(self, sizes: _Sizes) -> tuple[Tensor, Tensor, Tensor]:
        """Views of the device buffer, which grows where it must."""
        self._sizes = sizes
        end = sizes.bounds[2]
        if end > len(self._on_device):
            pinned = self._device.type == "cuda"
            self._on_device = torch.empty(end * 5 // 4, dtype=torch.uint8, device=self._device)
            self._on_host = torch.empty(end * 5 // 4, dtype=torch.uint8, pin_memory=pinned)
        return sizes.views(self._on_device)

    def _send(self, table: np.ndarray[Any, np.dtype[np.int64]]) -> Tensor:
        """The launch table on the device, by way of pinned memory."""
        if table.size > len(self._table):
            pinned = self._device.type == "cuda"
            self._table = torch.empty(table.size * 5 // 4, dtype=torch.int64, device=self._device)
            self._host_table = torch.empty(table.size * 5 // 4, dtype=torch.int64, pin_memory=pinned)
        self._host_table[: table.size].numpy()[:] = table.reshape(-1)
        return self._table[: table.size].copy_(self._host_table[: table.size], non_blocking=True)

    def block(self) -> StatsBlock:
        """The result, once it has arrived."""
        partials, hist, channels = (view.numpy() for view in self._sizes.views(self._on_host))
        pairs: list[Any] = []
        at = 0
        for width in self._sizes.widths:
            pairs.append((channels[at : at + width], channels[at + width : at + 2 * width]))
            at += 2 * width
        return self._layout.join(block_from_partials(partials, self._sizes.rows, hist, pairs))


class DeviceBuffer:
    """A ring of results that a device works on while training goes on.

    ``push`` queues the measuring on the current stream, so that the tensors may change or go right
    after it, and returns at once; ``poll`` gives what has arrived, without waiting. When all slots are
    in flight, ``push`` drops the call rather than wait. Safe to use from several threads.

    Parameters
    ----------
    device : torch.device or str
        Where the tensors lie. Tensors of other devices get a row with a reason.
    slots : int
        Calls in flight at most.
    triton : bool, optional
        Use the Triton kernels; by default where they can run.

    Examples
    --------
    >>> buffer = DeviceBuffer("cuda")
    >>> buffer.push([model.weight], tag=step)
    >>> for tag, block in buffer.poll():
    ...     write(tag, block)
    """

    def __init__(self, device: torch.device | str, *, slots: int = 8, triton: bool | None = None) -> None:
        self.device = torch.device(device)
        self.dropped = 0
        """Calls that found no free slot."""
        self._lock = threading.Lock()
        self._in_flight: deque[_Slot] = deque()
        wanted = has_triton(self.device) if triton is None else triton
        transfers: list[Transfer] = [_PlainTransfer() for _ in range(slots)]
        if self.device.type == "cuda":
            self.device = _indexed(self.device)
            stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
            transfers = [_CudaTransfer(stream) for _ in range(slots)]
        tables = torch.from_numpy(float8_tables().copy()).to(self.device) if wanted else None
        self._free = [_Slot(self.device, transfer, tables) for transfer in transfers]
        self._ready: deque[tuple[Any, StatsBlock]] = deque()

    @property
    def pending(self) -> int:
        """Calls whose results have not been picked up."""
        return len(self._in_flight) + len(self._ready)

    def push(
        self, tensors: Sequence[Tensor], *, channel_axes: Sequence[int | None] | None = None, tag: Any = None
    ) -> bool:
        """Measure tensors, which may change or go right after the call; False when dropped. Never raises.

        Parameters
        ----------
        tensors, channel_axes
            As for `tdbg_lab.stats.tensors.summarize_tensors`.
        tag : object
            Comes back with the block.
        """
        with self._lock:
            if not self._free:
                self.dropped += 1
                return False
            slot = self._free.pop()
        try:
            axes = channel_axes if channel_axes is not None else (None,) * len(tensors)
            parts, layout = take_apart(tensors, axes)
            parts = self._only_here(parts, layout)
            with torch.no_grad(), self._current():
                slot.fill(parts, layout, tag)
        except Exception as error:
            log.warning("Measuring %d tensors on %s failed.", len(tensors), self.device, exc_info=True)
            with self._lock:
                self._free.append(slot)
                self._ready.append((tag, empty_block(len(tensors), sentence(error))))
            return True
        with self._lock:
            self._in_flight.append(slot)
        return True

    def poll(self) -> list[tuple[Any, StatsBlock]]:
        """(tag, block) of the calls that have arrived, in their order. Does not wait."""
        return self._collect(wait=False)

    def drain(self) -> list[tuple[Any, StatsBlock]]:
        """(tag, block) of all calls so far, in their order. Waits for the device."""
        return self._collect(wait=True)

    def _collect(self, *, wait: bool) -> list[tuple[Any, StatsBlock]]:
        collected: list[tuple[Any, StatsBlock]] = []
        while True:
            with self._lock:
                while self._ready:
                    collected.append(self._ready.popleft())
                if not self._in_flight or not (wait or self._in_flight[0].done()):
                    return collected
                slot = self._in_flight.popleft()
            slot.wait()
            try:
                collected.append((slot.tag, slot.block()))
            finally:
                slot.tag = None
                with self._lock:
                    self._free.append(slot)

    def _current(self) -> AbstractContextManager[Any]:
        """Make this device the current one, as Triton wants it."""
        return torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext()

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


def summarize_on_device(parts: Sequence[Part], *, triton: bool | None = None) -> StatsBlock:
    """Statistics of dense parts on one device, one row each. Waits for it."""
    buffer = DeviceBuffer(parts[0].values.device, slots=1, triton=triton)
    axes = [part.axis for part in parts]
    buffer.push([part.values for part in parts], channel_axes=axes)
    return buffer.drain()[0][1]


def _indexed(device: torch.device) -> torch.device:
    """A CUDA device by its number: tensors never say ``cuda`` alone."""
    return torch.device("cuda", torch.cuda.current_device()) if str(device) == "cuda" else device


def _width(part: Part) -> int:
    """Channels of a part."""
    values, axis = part.values, part.axis
    if axis is None or not values.numel() or not -values.ndim <= axis < values.ndim:
        return 0
    return int(values.shape[axis])
