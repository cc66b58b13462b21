"""The statistics on CUDA: one Triton launch measures a tensor and its channels, or many of one element type.

Of many, a table on the device says which run of elements (a *chunk*) each program reads. A program keeps its
moments in registers, lane by lane, and its histogram in shared memory; at the end it writes one row
of partials (`tdbg_lab.stats.partials.COLUMNS`) and adds its histogram to that of its tensor. The bins
are those of the CPU kernels, bit for bit. Nothing here waits for the device.

Imports Triton: import it inside of functions, after `tdbg_lab.stats.triton_kernels`.
"""
# ruff: noqa: ANN001, ANN201, ANN202, C901, N803, PLR0124, PLR0912, PLR0915, PLR0917 - it is Triton's dialect
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl

from tdbg_lab.stats.dtypes import Code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["Chunks", "chunks_of", "compile_kernels", "launch", "launch_one", "plan", "read"]

log = logging.getLogger(__name__)

_LANES = 1024
"""Elements a program reads at a time."""
_SHORTEST, _LONGEST = 1 << 15, 1 << 18
"""Elements per chunk: few partials, and few enough additions per lane for float32."""
_CHUNKS = 1024
"""Chunks to cut a tensor into, between these lengths: as many as keep a large GPU busy."""
_OPTIONS = {"num_warps": 8, "enable_fp_fusion": True}
_WIDE, _LONG, _NO_CHANNELS = (8, 128), (1024, 1), (1, 0)
"""(elements, channels) that a program reads at a time: of channels that are neighbours, and of others."""
_LOOPS = 32
"""How often it does."""


@triton.jit
def read(address, at, mask, tables, CODE: tl.constexpr):
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
def _measure_run(
    address,
    start,
    stop,
    tables,
    out,
    hist,
    CODE: tl.constexpr,
    FLOAT: tl.constexpr,
    LANES: tl.constexpr,
    SMALL: tl.constexpr,
    LARGE: tl.constexpr,
    TINY: tl.constexpr,
):
    """Elements from `start` to `stop`: moments to a row of partials, counts added to a histogram."""
    lane = tl.arange(0, LANES)

    # The mean of the first elements is near that of all: differences to it lose nothing to cancellation.
    # (Names are not used again with another type: Triton carries every name through loops and branches.)
    head = read(address, start + lane, start + lane < stop, tables, CODE)
    head_x = head.to(FLOAT)
    head_good = (start + lane < stop) & (tl.abs(head_x) < float("inf"))
    head_n = tl.maximum(tl.sum(head_good.to(tl.int32), axis=0), 1)
    scale = tl.maximum(tl.max(tl.where(head_good, tl.abs(head_x), 0.0), axis=0), TINY)
    center = tl.sum(tl.where(head_good, head_x / scale, 0.0), axis=0) / head_n * scale
    shift = center.to(tl.float64)
    # Nearly all have one of the 127 magnitudes up to a little above the greatest of the first elements.
    lowest = tl.max(tl.where(head_good, _bins(head, CODE) & 1023, 0), axis=0) + 8 - 126
    lowest = tl.maximum(lowest, 0)

    rare = tl.zeros([LANES], tl.int32)
    zero = tl.zeros([LANES], tl.int32)
    low = tl.full([LANES], float("inf"), FLOAT)
    high = tl.full([LANES], float("-inf"), FLOAT)
    sum1 = tl.zeros([LANES], FLOAT)
    sum2 = tl.zeros([LANES], FLOAT)
    sum_abs = tl.zeros([LANES], FLOAT)
    counts = tl.zeros([256], tl.int32)
    for base in range(start, stop, LANES):
        at = base + lane
        mask = at < stop
        raw = read(address, at, mask, tables, CODE)
        x = raw.to(FLOAT)
        good = mask & (tl.abs(x) < float("inf"))
        # NaN, +inf and -inf, ten bits each: a lane sees less than 1024 elements.
        infinite = tl.where(x > 0.0, 1 << 10, 1 << 20)
        rare += tl.where(mask & ~good, tl.where(x != x, 1, infinite), 0)
        zero += (mask & (x == 0.0)).to(tl.int32)
        low = tl.where(good & (x < low), x, low)
        high = tl.where(good & (x > high), x, high)
        difference = tl.where(good, x - center, 0.0)
        sum1 += difference
        sum2 += difference * difference
        sum_abs += tl.where(good, tl.abs(x), 0.0)
        bins = _bins(raw, CODE)
        place = (bins & 1023) - lowest
        counted = good & (x != 0.0)
        near = counted & (place >= 0) & (place < 127)
        counts += tl.histogram(tl.where(near, (bins >> 10) * 128 + place, 127), 256)
        tl.atomic_add(hist + bins, 1, mask=counted & ~near, sem="relaxed")

    n_nan = tl.sum(rare & 1023, axis=0)
    n_above = tl.sum((rare >> 10) & 1023, axis=0)
    n_below = tl.sum(rare >> 20, axis=0)
    finite = (stop - start).to(tl.int32) - n_nan - n_above - n_below
    n = tl.maximum(finite, 1).to(tl.float64)
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
            wide = read(address, wide_base + lane, wide_mask, tables, CODE).to(tl.float64)
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

    tl.store(out, finite.to(tl.float64))
    tl.store(out + 1, n_nan.to(tl.float64))
    tl.store(out + 2, n_above.to(tl.float64))
    tl.store(out + 3, n_below.to(tl.float64))
    tl.store(out + 4, tl.sum(zero, axis=0).to(tl.float64))
    tl.store(out + 5, least)
    tl.store(out + 6, most)
    tl.store(out + 7, mean)
    tl.store(out + 8, std)
    tl.store(out + 9, absolute)
    every = tl.arange(0, 256)
    within = every & 127
    bin_of = (every >> 7) * 1024 + lowest + within
    tl.atomic_add(hist + bin_of, counts, mask=(counts > 0) & (within < 127), sem="relaxed")


@triton.jit
def _measure_channels(
    address,
    program,
    others,
    n_channels,
    inner,
    splits,
    tables,
    sums,
    CODE: tl.constexpr,
    FLOAT: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    LOOPS: tl.constexpr,
):
    """Some elements of some channels: zeros, the sum of finite ones and their number are added to `sums`.

    The tensor is stored as ``(outer, channels, inner)``; a program takes `COLS` channels, and so many of
    their ``others = outer * inner`` elements that float32 holds the sum.
    """
    column = (program // splits) * COLS + tl.arange(0, COLS)
    row = tl.arange(0, ROWS)
    first = (program % splits) * (ROWS * LOOPS)
    zeros = tl.zeros([ROWS, COLS], tl.int32)
    finite = tl.zeros([ROWS, COLS], tl.int32)
    total = tl.zeros([ROWS, COLS], FLOAT)
    for base in range(first, tl.minimum(first + ROWS * LOOPS, others), ROWS):
        other = base + row
        mask = (other < others)[:, None] & (column < n_channels)[None, :]
        outer = other // inner
        place = outer.to(tl.int64) * n_channels * inner + (other - outer * inner)
        at = place[:, None] + column.to(tl.int64)[None, :] * inner
        x = read(address, at, mask, tables, CODE).to(FLOAT)
        good = mask & (tl.abs(x) < float("inf"))
        zeros += (mask & (x == 0.0)).to(tl.int32)
        finite += good.to(tl.int32)
        total += tl.where(good, x, 0.0)
    there = column < n_channels
    tl.atomic_add(sums + column, tl.sum(zeros, axis=0).to(tl.float64), mask=there, sem="relaxed")
    tl.atomic_add(sums + n_channels + column, tl.sum(total.to(tl.float64), axis=0), mask=there, sem="relaxed")
    tl.atomic_add(
        sums + 2 * n_channels + column, tl.sum(finite, axis=0).to(tl.float64), mask=there, sem="relaxed"
    )


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
    TINY: tl.constexpr,
):
    """Many tensors of one type: what each program reads is in a table."""
    chunk = chunks + (tl.program_id(0) + first) * 4
    address = tl.load(chunk)
    start = tl.load(chunk + 1)
    stop = tl.load(chunk + 2)
    row = tl.load(chunk + 3)
    out = partials + (tl.program_id(0) + first) * 10
    _measure_run(address, start, stop, tables, out, hist + row * 2048, CODE, FLOAT, LANES, SMALL, LARGE, TINY)


_NUMBERS = (
    "address",
    "n",
    "length",
    "n_chunks",
    "out",
    "hist",
    "others",
    "n_channels",
    "inner",
    "splits",
    "sums",
)
"""Arguments of `_measure_one`, none of which deserves a kernel of its own."""
_POINTERS = ("address", "out", "hist", "sums")
_FAR = 1 << 40
"""Any pointer: larger than what 32 bits hold."""
_MOST_INT32 = 2**31 - 1


@triton.jit(do_not_specialize=_NUMBERS)
def _measure_one(
    address,
    n,
    length,
    n_chunks,
    out,
    hist,
    others,
    n_channels,
    inner,
    splits,
    sums,
    tables,
    CODE: tl.constexpr,
    FLOAT: tl.constexpr,
    LANES: tl.constexpr,
    SMALL: tl.constexpr,
    LARGE: tl.constexpr,
    TINY: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    LOOPS: tl.constexpr,
):
    """One tensor: the first programs take its chunks, the others its channels. Pointers are numbers."""
    program = tl.program_id(0)
    if program < n_chunks:
        start = program.to(tl.int64) * length
        stop = tl.minimum(start + length, n)
        row = out.to(tl.pointer_type(tl.float64)) + program * 10
        bins = hist.to(tl.pointer_type(tl.int32))
        _measure_run(address, start, stop, tables, row, bins, CODE, FLOAT, LANES, SMALL, LARGE, TINY)
    elif COLS > 0:
        _measure_channels(
            address,
            program - n_chunks,
            others,
            n_channels,
            inner,
            splits,
            tables,
            sums.to(tl.pointer_type(tl.float64)),
            CODE,
            FLOAT,
            ROWS,
            COLS,
            LOOPS,
        )


class Chunks(NamedTuple):
    """Which program reads what: the launch plan of a list of tensors."""

    table: NDArray[np.int64]
    """``(P, 4) int64``: address, start, stop, row; grouped by element type."""
    launches: list[tuple[int, int, int]]
    """(code, first chunk, chunks) of each launch."""
    order: list[int]
    """Tensors in the order of their chunks."""
    counts: list[int]
    """Chunks of each, in this order."""


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
    launches = [(int(code), bounds[i], bounds[i + 1] - bounds[i]) for i, code in enumerate(found.tolist())]
    return Chunks(table, launches, order.tolist(), n_chunks.tolist())


def chunks_of(n: int) -> tuple[int, int]:
    """(length, number) of the chunks that `plan` cuts so many elements into."""
    length = min(max(-(-n // (_CHUNKS * _LANES)) * _LANES, _SHORTEST), _LONGEST)
    return length, max(-(-n // length), 1)


def launch(chunks: Chunks, table: Tensor, tables: Tensor, partials: Tensor, hist: Tensor) -> None:
    """Queue the measuring of many tensors on the current stream.

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
        _measure_chunks[(n,)](table, first, tables, partials, hist, **_of_code(code), **_OPTIONS)


def launch_one(
    memory: tuple[int, int, int, int, int], tables: Tensor, partials: int, hist: int, sums: int
) -> None:
    """Queue the measuring of one tensor, and of its channels, on the current stream.

    Parameters
    ----------
    memory
        As `tdbg_lab.stats.pointers.Memory`.
    tables : (5, 256) float32
        As for `launch`.
    partials, hist, sums
        Addresses on the device: of ``(P, 10) float64``, which is set, P being that of `chunks_of`; of
        ``(2048,) int32`` and ``(3, channels) float64``, which are added to.
    """
    address, code, n, n_channels, inner = memory
    length, n_chunks = chunks_of(n)
    others, splits, programs, tile = 0, 1, 0, _NO_CHANNELS
    if n_channels:
        others = n // n_channels
        tile = _WIDE if inner == 1 else _LONG
        splits = -(-others // (tile[0] * _LOOPS))
        programs = -(-n_channels // tile[1]) * splits
    address = address or partials  # of nothing: never read, but to be a pointer
    values = (address, n, length, n_chunks, partials, hist, others, n_channels, inner, splits, sums)
    device = tables.get_device()
    _launch(_compiled(device, code, *tile), (n_chunks + programs, 1, 1), values, tables)


class _Compiled(NamedTuple):
    """`_measure_one` for an element type and a tile."""

    kernel: Any
    """Compiled; None where Triton only interprets."""
    constants: dict[str, Any]


@cache
def _compiled(device: int, code: int, rows: int, cols: int) -> _Compiled:
    """For one device, which is the current one; -1 is none."""
    constants = {**_of_code(code), "ROWS": rows, "COLS": cols, "LOOPS": _LOOPS}
    if device < 0 or not hasattr(_measure_one, "device_caches"):
        return _Compiled(None, constants)
    numbers = [_FAR if name in _POINTERS else 1 for name in _NUMBERS]
    kernel = _measure_one.warmup(*numbers, torch.float32, **constants, **_OPTIONS, grid=(1,))
    return _Compiled(kernel, constants)


def _launch(compiled: _Compiled, grid: tuple[int, int, int], values: tuple[int, ...], tables: Tensor) -> None:
    """Launch `_measure_one`: straight, in a few microseconds; Triton's own way takes ten times longer."""
    kernel, constants = compiled
    if kernel is not None and max(values[1:4] + values[6:10]) <= _MOST_INT32:
        try:
            kernel[grid](*values, tables, *constants.values())
        except TypeError:  # a Triton that wants other arguments there
            log.debug("Triton's compiled kernels cannot be launched straight.", exc_info=True)
        else:
            return
    _measure_one[grid](*values, tables, **constants, **_OPTIONS)


def compile_kernels() -> None:
    """Compile the kernels for the types that models are made of, without launching any."""
    for code in (Code.FLOAT32, Code.BFLOAT16, Code.FLOAT16):
        tables, partials = torch.float32, torch.float64
        _measure_chunks.warmup(
            torch.int64, 0, tables, partials, torch.int32, **_of_code(int(code)), **_OPTIONS, grid=(1,)
        )
        for tile in (_NO_CHANNELS, _WIDE, _LONG):
            _compiled(torch.cuda.current_device(), int(code), *tile)


@cache
def _of_code(code: int) -> dict[str, Any]:
    """What the kernels of an element type are compiled with."""
    wide = Code.FLOAT64 <= code < Code.FLOAT8_FIRST
    return {
        "CODE": code,
        "FLOAT": tl.float64 if wide else tl.float32,
        "LANES": _LANES,
        "SMALL": 1e-140 if wide else 1e-12,
        "LARGE": 1e140 if wide else 1e15,
        "TINY": 1e-300 if wide else 1e-37,
    }
