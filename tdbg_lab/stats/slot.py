"""One set of results on a device, from the first tensor that is measured into it until it is read."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from tdbg_lab.stats import torch_ops
from tdbg_lab.stats.bins import N_BINS
from tdbg_lab.stats.block import empty_block
from tdbg_lab.stats.columns import Column
from tdbg_lab.stats.gather import Layout
from tdbg_lab.stats.layouts import memory_of
from tdbg_lab.stats.partials import COLUMNS, block_from_partials

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from tdbg_lab.records import StatsBlock
    from tdbg_lab.stats.layouts import Part
    from tdbg_lab.stats.transfers import Transfer

__all__ = ["Slot", "countable"]

_FEW = 2
"""Tensors that are measured by a launch each; one for all of a type reads what to do from a table."""
_MOST_OTHERS = 1 << 30
"""Elements a channel that the kernel can count; of larger tensors torch does."""


@cache
def cuda() -> Any:
    """The module of the Triton kernels, imported where they are called."""
    from tdbg_lab.stats import cuda as kernels

    return kernels


class Slot:
    """Partials, histograms, channels and numbers, on the device and on the host.

    Parameters
    ----------
    transfer
        How results come to the host.
    """

    def __init__(self, device: torch.device, transfer: Transfer) -> None:
        self.transfer = transfer
        self.error = ""
        """Why no statistics are known."""
        self.lost = False
        """Nobody knows whether the device still writes to it."""
        self._device = device
        self._layout = Layout(0)
        self._partials = Column(device, torch.float64, len(COLUMNS))
        self._hist = Column(device, torch.int32, N_BINS, zeroed=True)
        self._channels = Column(device, torch.float64, 3, zeroed=True)
        self._numbers = Column(device, torch.float64)
        self._values = Column(device, torch.uint8)
        self._owners: list[int] = []
        self._counts: list[int] = []
        """Parts in the order of their partials, and how many each has."""
        self._widths: list[tuple[int, int]] = []
        """Channels and elements of each part."""
        self._planned: tuple[Any, Any, Tensor] | None = None
        """Many tensors, the plan for them, and its table on the device."""

    @property
    def rows(self) -> int:
        """Tensors so far."""
        return self._layout.n_rows

    def lose(self, reason: str) -> None:
        """Give up what is on its way."""
        self.lost, self.error = True, reason

    @property
    def value_bytes(self) -> int:
        """Bytes of tensors that are taken along so far."""
        return self._values.rows

    def clear(self) -> None:
        """Begin anew."""
        self.error = ""
        self._layout = Layout(0)
        for column in self._columns():
            column.clear()
        self._owners, self._counts, self._widths = [], [], []

    def _columns(self) -> tuple[Column, ...]:
        return self._partials, self._hist, self._channels, self._numbers, self._values

    # -- on the device ----------------------------------------------------------------------------

    def add_numbers(self, values: Tensor) -> int:
        """Queue a copy of real numbers; the place of the first."""
        self.transfer.follow()
        first, n = self._numbers.rows, values.numel()
        self._numbers.reserve(n)
        self._numbers.last(n).copy_(values.reshape(-1))
        return first

    def add_values(self, tensor: Tensor) -> int:
        """Queue a copy of a contiguous tensor as it is; the place of its first byte."""
        self.transfer.follow()
        first, n = self._values.rows, tensor.numel() * tensor.itemsize
        self._values.reserve(n)
        self._values.last(n).copy_(tensor.reshape(-1).view(torch.uint8))
        return first

    def refuse(self, rows: int, reason: str) -> int:
        """Add rows that have a reason only; the first of them."""
        first = self._layout.n_rows
        self._layout.extend(Layout(rows, reasons=dict.fromkeys(range(rows), reason)))
        return first

    def add_ordinary(self, memories: list[tuple[int, int, int, int, int]], tables: Tensor) -> None:
        """Queue the measuring of ordinary tensors by the Triton kernels.

        Parameters
        ----------
        memories
            As `tdbg_lab.stats.pointers.Memory`.
        tables
            For the kernels, on the device.
        """
        self._layout.add_parts(len(memories))
        self.transfer.follow()
        self._launch(memories, tables)

    def add(self, parts: Sequence[Part], layout: Layout, tables: Tensor | None) -> None:
        """Queue the measuring of parts that lie on the device.

        Parameters
        ----------
        tables
            As for `add_ordinary`; None to measure by torch operations.
        """
        self._layout.extend(layout)
        if not parts:
            return
        self.transfer.follow()
        memories = [memory_of(part.values, part.axis) for part in parts]
        if tables is None or not all(map(countable, memories)):
            self._add_by_torch(parts)
        else:
            self._launch(memories, tables)

    def _launch(self, memories: list[tuple[int, int, int, int, int]], tables: Tensor) -> None:
        if len(memories) <= _FEW or any(memory[3] for memory in memories):
            for memory in memories:
                self._launch_one(memory, tables)
        else:
            self._launch_many(memories, tables)

    def _launch_one(self, memory: tuple[int, int, int, int, int], tables: Tensor) -> None:
        address, code, n, width, inner = memory
        form = cuda().form_of(tables.get_device(), code, n, width, inner)
        self._owners.append(len(self._widths))
        self._counts.append(form.n_chunks)
        self._widths.append((width, n))
        partials, hist = self._partials.reserve(form.n_chunks), self._hist.reserve(1)
        form.launch(address, tables, partials, hist, self._channels.reserve(width))

    def _launch_many(self, memories: list[tuple[int, int, int, int, int]], tables: Tensor) -> None:
        if self._planned is None or self._planned[0] != memories:
            chunks = cuda().plan(memories)
            host = torch.from_numpy(chunks.table)
            host = host.pin_memory() if self._device.type == "cuda" else host
            self._planned = memories, chunks, host.to(self._device, non_blocking=True)
        _, chunks, table = self._planned
        n_chunks, n, base = len(table), len(memories), len(self._widths)
        self._partials.reserve(n_chunks)
        self._hist.reserve(n)
        self._owners += [base + part for part in chunks.order]
        self._counts += chunks.counts
        self._widths += [(0, memory[2]) for memory in memories]
        cuda().launch(chunks, table, tables, self._partials.last(n_chunks), self._hist.last(n))

    def _add_by_torch(self, parts: Sequence[Part]) -> None:
        queued = torch_ops.queue([part.values for part in parts], [part.axis for part in parts])
        self._owners += range(len(self._widths), len(self._widths) + len(parts))
        self._counts += queued.counts
        for column, found in ((self._partials, queued.partials), (self._hist, queued.hist)):
            column.reserve(len(found))
            column.last(len(found)).copy_(found)
        for sums, n in zip(queued.channels, queued.sizes, strict=True):
            width = 0 if sums is None else len(sums)
            self._widths.append((width, n))
            if sums is not None:
                self._channels.reserve(width)
                self._channels.last(width).copy_(sums)

    def send(self) -> None:
        """Queue the copy of all of it to the host."""
        self.transfer.start([column.pair() for column in self._columns() if column.rows])

    # -- on the host ------------------------------------------------------------------------------

    def block(self) -> StatsBlock:
        """The rows, once they have arrived."""
        if self.error:
            return empty_block(self.rows, self.error)
        parts = block_from_partials(
            self._partials.numpy(),
            self._owners,
            self._counts,
            self._hist.numpy(),
            self._channels.numpy(),
            widths=self._widths,
        )
        return self._layout.join(parts)

    def numbers(self) -> NDArray[np.float64]:
        """A copy of the numbers, once they have arrived; none where they are lost."""
        found: NDArray[np.float64] = self._numbers.numpy()
        return found[:0].copy() if self.lost else found.copy()

    def values(self) -> NDArray[np.uint8]:
        """A copy of the bytes of `add_values`, once they have arrived; none where they are lost."""
        found: NDArray[np.uint8] = self._values.numpy()
        return found[:0].copy() if self.lost else found.copy()


def countable(memory: tuple[int, int, int, int, int]) -> bool:
    """Whether the kernels can count the elements of a channel."""
    return not memory[3] or memory[2] // memory[3] <= _MOST_OTHERS
