"""Samples of many tensors on CUDA, copied in one launch, and compared with what is there later.

Imports Triton: import it inside of functions, after `tdbg_lab.stats.triton_kernels`.
"""
# ruff: noqa: ANN001, ANN202, N803, PLR0917 - it is Triton's dialect
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from tdbg_lab.stats.cuda_kernels import read
from tdbg_lab.stats.dtypes import Code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

__all__ = ["SAMPLED_CODES", "DeviceSamples", "compile_kernels"]

SAMPLED_CODES = frozenset({int(Code.FLOAT32), int(Code.FLOAT16), int(Code.BFLOAT16)})
"""Element types that can be sampled."""
_LANES = 1024


@triton.jit
def _sample(row, k, n, tables, CODE: tl.constexpr):
    """The elements that are looked at from number `k` on, as a row of the table says."""
    width = tl.load(row + 1).to(tl.int32)
    at = (k // width).to(tl.int64) * tl.load(row + 2) + k % width
    return read(tl.load(row), 0, at, k < n, tables, CODE)


@triton.jit
def _copy_samples(table, first, tables, old, CODE: tl.constexpr, LANES: tl.constexpr):
    row = table + (tl.program_id(0) + first) * 6
    n = tl.load(row + 3).to(tl.int32)
    kept = old + tl.load(row + 4)
    for base in range(0, n, LANES):
        k = base + tl.arange(0, LANES)
        tl.store(kept + k, _sample(row, k, n, tables, CODE), mask=k < n)


@triton.jit
def _compare_samples(table, first, tables, old, ratios, CODE: tl.constexpr, LANES: tl.constexpr):
    row = table + (tl.program_id(0) + first) * 6
    n = tl.load(row + 3).to(tl.int32)
    kept = old + tl.load(row + 4)
    size = tl.zeros([LANES], tl.float64)
    moved = tl.zeros([LANES], tl.float64)
    for base in range(0, n, LANES):
        k = base + tl.arange(0, LANES)
        before = tl.load(kept + k, mask=k < n, other=0.0).to(tl.float64)
        change = _sample(row, k, n, tables, CODE).to(tl.float64) - before
        size += before * before
        moved += tl.where(k < n, change * change, 0.0)
    tl.store(ratios + tl.load(row + 5), tl.sqrt(tl.sum(moved, axis=0) / tl.sum(size, axis=0)))


def compile_kernels() -> None:
    """Compile the kernels for the types that models are made of, without launching any."""
    for code in sorted(SAMPLED_CODES):
        options = {"CODE": code, "LANES": _LANES, "grid": (1,)}
        _copy_samples.warmup(torch.int64, 0, torch.float32, torch.float32, **options)
        _compare_samples.warmup(torch.int64, 0, torch.float32, torch.float32, torch.float64, **options)


class DeviceSamples:
    """Copies of evenly spread elements of tensors on one device. Nothing waits for it.

    Parameters
    ----------
    memories : sequence of (address, code, elements, ...)
        Tensors without gaps, of types in `SAMPLED_CODES`, see `tdbg_lab.stats.pointers.Memory`.
    plans : sequence of (blocks, width, step)
        What is looked at of each, as for `tdbg_lab.stats.samples.Samples`.
    tables : (5, 256) float32
        `tdbg_lab.stats.dtypes.float8_tables`, on the device.
    """

    def __init__(
        self,
        memories: Sequence[tuple[int, int, int, int, int]],
        plans: Sequence[tuple[int, int, int]],
        tables: Tensor,
    ) -> None:
        order = sorted(range(len(memories)), key=lambda i: memories[i][1])
        rows, offset = [], 0
        for i in order:
            blocks, width, step = plans[i]
            rows.append([memories[i][0], width, step, blocks * width, offset, i])
            offset += blocks * width
        device = tables.device
        table = torch.tensor(rows, dtype=torch.int64)
        self._table = table.pin_memory().to(device, non_blocking=True) if tables.is_cuda else table
        self._tables = tables
        self._launches: list[tuple[int, int, int]] = []
        """(code, first row, rows) of each launch."""
        first = 0
        for code, some in groupby(memories[i][1] for i in order):
            n = len(list(some))
            self._launches.append((code, first, n))
            first += n
        self._old = torch.empty(offset, dtype=torch.float32, device=device)
        self._ratios = torch.empty(len(rows), dtype=torch.float64, device=device)

    def copy(self) -> None:
        """Keep what the tensors are now."""
        for code, first, n in self._launches:
            _copy_samples[(n,)](self._table, first, self._tables, self._old, CODE=code, LANES=_LANES)

    def ratios(self) -> Tensor:
        """``|new - old| / |old|`` of each, as L2 norms of what is looked at: ``(N,) float64``, on the device.

        The same tensor each time.
        """
        for code, first, n in self._launches:
            _compare_samples[(n,)](
                self._table, first, self._tables, self._old, self._ratios, CODE=code, LANES=_LANES
            )
        return self._ratios
