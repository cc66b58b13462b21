"""What a GPU computes of tensors, in Triton: moments and histogram of runs of elements, and their channels.

A program keeps its moments in registers, lane by lane, and its histogram in shared memory; at the end it
writes one row of partials (`tdbg_lab.stats.partials.COLUMNS`) and adds its histogram to that of its tensor.
The bins are those of the CPU kernels, bit for bit.

Imports Triton: import it inside of functions, after `tdbg_lab.stats.triton_kernels`.
"""
# ruff: noqa: ANN001, ANN201, ANN202, C901, N803, PLR0124, PLR0912, PLR0915, PLR0917 - it is Triton's dialect
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["NUMBERS", "measure_chunks", "measure_one", "read"]


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
def measure_chunks(
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


NUMBERS = (
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
"""Arguments of `measure_one`, none of which deserves a kernel of its own."""


@triton.jit(do_not_specialize=NUMBERS)
def measure_one(
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
