"""The statistics on CUDA: one Triton launch per element type measures many tensors.

A table on the device says which run of elements (a *chunk*) each program reads. A program keeps its
moments in registers, lane by lane, and its histogram in shared memory; at the end it writes one row
of partials (`tdbg_lab.stats.partials.COLUMNS`) and adds its histogram to that of its tensor. The bins
are those of the CPU kernels, bit for bit. Nothing here waits for the device.

Imports Triton: import it inside of functions, after `tdbg_lab.stats.device.has_triton`.
"""
# ruff: noqa: ANN001, ANN202, C901, N803, PLR0124, PLR0912, PLR0915, PLR0917 - it is Triton's dialect
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import triton
import triton.language as tl

from tdbg_lab.stats.dtypes import Code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["Chunks", "launch", "plan"]

_LANES = 1024
"""Elements a program reads at a time."""
_SHORTEST, _LONGEST = 1 << 16, 1 << 19
"""Elements per chunk: few partials, and few enough additions per lane for float32."""
_CHUNKS = 128
"""Chunks to cut a tensor into, between these lengths."""


@triton.jit
def _read(address, at, mask, tables, CODE: tl.constexpr):
    """Elements by `tdbg_lab.stats.dtypes.Code`: float32; float64 for 8; integers as they are from 9 on."""
    if CODE == 0:
        x = tl.load(address.to(tl.pointer_type(tl.float32)) + at, mask=mask, other=0.0)
    elif CODE == 1:
        x = tl.load(address.to(tl.pointer_type(tl.float16)) + at, mask=mask, other=0.0).to(tl.float32)
    elif CODE == 2:
        bits = tl.load(address.to(tl.pointer_type(tl.uint16)) + at, mask=mask, other=0).to(tl.uint32)
        x = (bits << 16).to(tl.float32, bitcast=True)
    elif CODE == 3:
        x = tl.load(address.to(tl.pointer_type(tl.int8)) + at, mask=mask, other=0).to(tl.float32)
    elif CODE == 4:
        x = tl.load(address.to(tl.pointer_type(tl.uint8)) + at, mask=mask, other=0).to(tl.float32)
    elif CODE == 5:
        flag = tl.load(address.to(tl.pointer_type(tl.uint8)) + at, mask=mask, other=0)
        x = (flag != 0).to(tl.float32)
    elif CODE == 6:
        x = tl.load(address.to(tl.pointer_type(tl.int16)) + at, mask=mask, other=0).to(tl.float32)
    elif CODE == 7:
        x = tl.load(address.to(tl.pointer_type(tl.uint16)) + at, mask=mask, other=0).to(tl.float32)
    elif CODE == 8:
        x = tl.load(address.to(tl.pointer_type(tl.float64)) + at, mask=mask, other=0.0)
    elif CODE == 9:
        x = tl.load(address.to(tl.pointer_type(tl.int32)) + at, mask=mask, other=0)
    elif CODE == 10:
        x = tl.load(address.to(tl.pointer_type(tl.uint32)) + at, mask=mask, other=0)
    elif CODE == 11:
        x = tl.load(address.to(tl.pointer_type(tl.int64)) + at, mask=mask, other=0)
    elif CODE == 12:
        x = tl.load(address.to(tl.pointer_type(tl.uint64)) + at, mask=mask, other=0)
    else:
        byte = tl.load(address.to(tl.pointer_type(tl.uint8)) + at, mask=mask, other=0).to(tl.int32)
        x = tl.load(tables + (CODE - 16) * 256 + byte, mask=mask, other=0.0)
    return x


@triton.jit
def _bins(x, CODE: tl.constexpr):
    """Bin of each element; float64 is rounded so that no value becomes zero or infinite."""
    narrow = x.to(tl.float32)
    bits = narrow.to(tl.int32, bitcast=True)
    if CODE == 8:
        sign = tl.where(x < 0.0, -2147483648, 0)
        magnitude = bits & 0x7FFFFFFF
        magnitude = tl.where((magnitude == 0) & (x != 0.0), 1, magnitude)
        magnitude = tl.where((magnitude == 0x7F800000) & (tl.abs(x) < float("inf")), 0x7F7FFFFF, magnitude)
        bits = magnitude | sign
    return (bits >> 21) & 2047


@triton.jit
def _measure_chunks(
    chunks,
    first,
    tables,
    partials,
    hist,
    CODE: tl.constexpr,
    FLOAT: tl.constexpr,
    LANES: tl.constexpr,
    SMALL: tl.constexpr,
    LARGE: tl.constexpr,
):
    program = tl.program_id(0) + first
    address = tl.load(chunks + program * 4)
    start = tl.load(chunks + program * 4 + 1)
    stop = tl.load(chunks + program * 4 + 2)
    row = tl.load(chunks + program * 4 + 3)
    lane = tl.arange(0, LANES)

    # The mean of the first elements is near that of all: differences to it lose nothing to cancellation.
    # (Names are not used again with another type: Triton carries every name through loops and branches.)
    head = _read(address, start + lane, start + lane < stop, tables, CODE).to(tl.float64)
    head_good = (start + lane < stop) & (tl.abs(head) < float("inf"))
    head_n = tl.maximum(tl.sum(head_good.to(tl.int32), axis=0), 1)
    scale = tl.maximum(tl.max(tl.where(head_good, tl.abs(head), 0.0), axis=0), 1e-300)
    center = (tl.sum(tl.where(head_good, head / scale, 0.0), axis=0) / head_n * scale).to(FLOAT)
    shift = center.to(tl.float64)

    finite = tl.zeros([LANES], tl.int32)
    nan = tl.zeros([LANES], tl.int32)
    above = tl.zeros([LANES], tl.int32)
    below = tl.zeros([LANES], tl.int32)
    zero = tl.zeros([LANES], tl.int32)
    low = tl.full([LANES], float("inf"), FLOAT)
    high = tl.full([LANES], float("-inf"), FLOAT)
    sum1 = tl.zeros([LANES], FLOAT)
    sum2 = tl.zeros([LANES], FLOAT)
    sum_abs = tl.zeros([LANES], FLOAT)
    counts = tl.zeros([2048], tl.int32)
    for base in range(start, stop, LANES):
        at = base + lane
        mask = at < stop
        raw = _read(address, at, mask, tables, CODE)
        x = raw.to(FLOAT)
        good = mask & (tl.abs(x) < float("inf"))
        finite += good.to(tl.int32)
        nan += (mask & (x != x)).to(tl.int32)
        above += (mask & (x == float("inf"))).to(tl.int32)
        below += (mask & (x == float("-inf"))).to(tl.int32)
        zero += (mask & (x == 0.0)).to(tl.int32)
        low = tl.where(good & (x < low), x, low)
        high = tl.where(good & (x > high), x, high)
        difference = tl.where(good, x - center, 0.0)
        sum1 += difference
        sum2 += difference * difference
        sum_abs += tl.where(good, tl.abs(x), 0.0)
        # 1023 belongs to no finite value
        counts += tl.histogram(tl.where(good & (x != 0.0), _bins(raw, CODE), 1023), 2048)

    n = tl.maximum(tl.sum(finite, axis=0), 1).to(tl.float64)
    offset = tl.sum(sum1.to(tl.float64), axis=0) / n
    variance = tl.sum(sum2.to(tl.float64), axis=0) / n - offset * offset
    mean = shift + offset
    std = tl.sqrt(tl.maximum(variance, 0.0))
    absolute = tl.sum(sum_abs.to(tl.float64), axis=0)
    least = tl.min(low, axis=0).to(tl.float64)
    most = tl.max(high, axis=0).to(tl.float64)
    far = tl.maximum(tl.abs(least), tl.abs(most))
    if (far < float("inf")) & ((far > LARGE) | ((far > 0.0) & (far < SMALL))):
        # Squares of such values overflow or vanish: once more, in float64 and in units of the largest.
        # (`far` is infinite where nothing is finite.)
        unit = tl.maximum(far, 1e-300)
        wide1 = tl.zeros([LANES], tl.float64)
        wide2 = tl.zeros([LANES], tl.float64)
        wide_abs = tl.zeros([LANES], tl.float64)
        for wide_base in range(start, stop, LANES):
            wide_mask = wide_base + lane < stop
            wide = _read(address, wide_base + lane, wide_mask, tables, CODE).to(tl.float64)
            wide_good = wide_mask & (tl.abs(wide) < float("inf"))
            wide_difference = tl.where(wide_good, wide / unit - shift / unit, 0.0)
            wide1 += wide_difference
            wide2 += wide_difference * wide_difference
            wide_abs += tl.where(wide_good, tl.abs(wide) / unit, 0.0)
        offset = tl.sum(wide1, axis=0) / n
        variance = tl.sum(wide2, axis=0) / n - offset * offset
        mean = shift + offset * unit
        std = tl.sqrt(tl.maximum(variance, 0.0)) * unit
        absolute = tl.sum(wide_abs, axis=0) * unit

    out = partials + program * 10
    tl.store(out, tl.sum(finite, axis=0).to(tl.float64))
    tl.store(out + 1, tl.sum(nan, axis=0).to(tl.float64))
    tl.store(out + 2, tl.sum(above, axis=0).to(tl.float64))
    tl.store(out + 3, tl.sum(below, axis=0).to(tl.float64))
    tl.store(out + 4, tl.sum(zero, axis=0).to(tl.float64))
    tl.store(out + 5, least)
    tl.store(out + 6, most)
    tl.store(out + 7, mean)
    tl.store(out + 8, std)
    tl.store(out + 9, absolute)
    every = tl.arange(0, 2048)
    tl.atomic_add(hist + row * 2048 + every, counts, mask=(counts > 0) & (every != 1023), sem="relaxed")


class Chunks:
    """Which program reads what: the launch plan of a list of tensors."""

    def __init__(self, table: NDArray[np.int64], launches: list[tuple[int, int, int]]) -> None:
        self.table = table
        """``(P, 4) int64``: address, start, stop, row; grouped by element type."""
        self.launches = launches
        """(code, first chunk, chunks) of each launch."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """Tensor of each chunk, ``(P,)``."""
        return self.table[:, 3]


def plan(memories: Sequence[tuple[int, int, int, int, int]]) -> Chunks:
    """Cut tensors, given as in `tdbg_lab.stats.pointers.Memory`, into chunks. An empty one has one too."""
    codes = np.array([memory[1] for memory in memories], np.int64)
    sizes = np.array([memory[2] for memory in memories], np.int64)
    order = np.argsort(codes, kind="stable")
    length = np.clip(-(-sizes // (_CHUNKS * _LANES)) * _LANES, _SHORTEST, _LONGEST)[order]
    sizes = sizes[order]
    n_chunks = np.maximum(-(-sizes // length), 1)
    row = np.repeat(order, n_chunks)
    within = np.arange(len(row)) - np.repeat(np.cumsum(n_chunks) - n_chunks, n_chunks)
    start = within * np.repeat(length, n_chunks)
    stop = np.minimum(start + np.repeat(length, n_chunks), np.repeat(sizes, n_chunks))
    addresses = np.array([memory[0] for memory in memories], np.int64)
    table = np.stack([addresses[row], start, stop, row], axis=1)
    found, first = np.unique(codes[row], return_index=True)
    bounds = [*first.tolist(), len(row)]
    return Chunks(
        table, [(int(code), bounds[i], bounds[i + 1] - bounds[i]) for i, code in enumerate(found.tolist())]
    )


def launch(chunks: Chunks, table: Tensor, tables: Tensor, partials: Tensor, hist: Tensor) -> None:
    """Queue the measuring on the current stream.

    Parameters
    ----------
    chunks : Chunks
    table : (P, 4) int64
        ``chunks.table``, on the device.
    tables : (5, 256) float32
        `tdbg_lab.stats.dtypes.float8_tables`, on the device.
    partials : (P, 10) float64
        Set.
    hist : (N, 2048) int32
        Added to.
    """
    for code, first, n in chunks.launches:
        wide = Code.FLOAT64 <= code < Code.FLOAT8_FIRST
        _measure_chunks[(n,)](
            table,
            first,
            tables,
            partials,
            hist,
            CODE=code,
            FLOAT=tl.float64 if wide else tl.float32,
            LANES=_LANES,
            SMALL=1e-140 if wide else 1e-12,
            LARGE=1e140 if wide else 1e15,
            num_warps=8,
            enable_fp_fusion=True,
        )
