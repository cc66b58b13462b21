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

from tdbg_lab.stats.shared_counts import clear, count, counted

__all__ = ["NUMBERS", "measure_chunks", "measure_one", "read"]


_NAN, _ABOVE, _BELOW, _ZERO, _OUTSIDE = (tl.constexpr(place) for place in (1020, 1021, 1022, 1023, 2047))
"""Where NaN, +inf, -inf, zeros, and what lies beyond the end are counted: bins of exponents that only
NaN and infinities have."""


@triton.jit
def read(address, first, at, mask, tables, CODE: tl.constexpr):
    """Elements from `first` on by `tdbg_lab.stats.dtypes.Code`: float32; of 8 float64, from 9 on integers."""
    if CODE == 0:
        x = tl.load(address.to(tl.pointer_type(tl.float32)) + first + at, mask=mask, other=0.0)
    elif CODE == 1:
        x = tl.load(address.to(tl.pointer_type(tl.float16)) + first + at, mask=mask, other=0.0).to(tl.float32)
    elif CODE == 2:
        bits = tl.load(address.to(tl.pointer_type(tl.uint16)) + first + at, mask=mask, other=0).to(tl.uint32)
        x = (bits << 16).to(tl.float32, bitcast=True)
    elif CODE == 3:
        x = tl.load(address.to(tl.pointer_type(tl.int8)) + first + at, mask=mask, other=0).to(tl.float32)
    elif CODE == 4:
        x = tl.load(address.to(tl.pointer_type(tl.uint8)) + first + at, mask=mask, other=0).to(tl.float32)
    elif CODE == 5:
        flag = tl.load(address.to(tl.pointer_type(tl.uint8)) + first + at, mask=mask, other=0)
        x = (flag != 0).to(tl.float32)
    elif CODE == 6:
        x = tl.load(address.to(tl.pointer_type(tl.int16)) + first + at, mask=mask, other=0).to(tl.float32)
    elif CODE == 7:
        x = tl.load(address.to(tl.pointer_type(tl.uint16)) + first + at, mask=mask, other=0).to(tl.float32)
    elif CODE == 8:
        x = tl.load(address.to(tl.pointer_type(tl.float64)) + first + at, mask=mask, other=0.0)
    elif CODE == 9:
        x = tl.load(address.to(tl.pointer_type(tl.int32)) + first + at, mask=mask, other=0)
    elif CODE == 10:
        x = tl.load(address.to(tl.pointer_type(tl.uint32)) + first + at, mask=mask, other=0)
    elif CODE == 11:
        x = tl.load(address.to(tl.pointer_type(tl.int64)) + first + at, mask=mask, other=0)
    elif CODE == 12:
        x = tl.load(address.to(tl.pointer_type(tl.uint64)) + first + at, mask=mask, other=0)
    else:
        byte = tl.load(address.to(tl.pointer_type(tl.uint8)) + first + at, mask=mask, other=0).to(tl.int32)
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
def _slots(raw, x, good, mask, CODE: tl.constexpr):
    """Where each element is counted: in its bin, or in one that no finite number has."""
    slot = tl.where(x == 0.0, _ZERO, _bins(raw, CODE))
    slot = tl.where(good, slot, tl.where(x != x, _NAN, tl.where(x > 0.0, _ABOVE, _BELOW)))
    return tl.where(mask, slot, _OUTSIDE)


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
    SHARED: tl.constexpr,
):
    """Elements from `start` to `stop`: moments to a row of partials, counts added to a histogram."""
    lane = tl.arange(0, LANES)
    every = tl.arange(0, 2048)
    counts = tl.zeros([2048], tl.int32)
    if SHARED:
        clear(every)
        tl.debug_barrier()

    # The mean of the first elements is near that of all: differences to it lose nothing to cancellation.
    # (Names are not used again with another type: Triton carries every name through loops and branches.)
    n_all = (stop - start).to(tl.int32)
    head = read(address, start, lane, lane < n_all, tables, CODE)
    head_x = head.to(FLOAT)
    head_good = (lane < n_all) & (tl.abs(head_x) < float("inf"))
    head_n = tl.maximum(tl.sum(head_good.to(tl.int32), axis=0), 1)
    scale = tl.maximum(tl.max(tl.where(head_good, tl.abs(head_x), 0.0), axis=0), TINY)
    center = tl.sum(tl.where(head_good, head_x / scale, 0.0), axis=0) / head_n * scale
    shift = center.to(tl.float64)

    low = tl.full([LANES], float("inf"), FLOAT)
    high = tl.full([LANES], float("-inf"), FLOAT)
    sum1 = tl.zeros([LANES], FLOAT)
    sum2 = tl.zeros([LANES], FLOAT)
    sum_abs = tl.zeros([LANES], FLOAT)
    raw = head
    for base in range(0, n_all, LANES):
        # The next elements are on their way while these are looked at.
        at = base + LANES + lane
        coming = read(address, start, at, at < n_all, tables, CODE)
        mask = base + lane < n_all
        x = raw.to(FLOAT)
        good = mask & (tl.abs(x) < float("inf"))
        low = tl.minimum(low, tl.where(good, x, float("inf")))
        high = tl.maximum(high, tl.where(good, x, float("-inf")))
        difference = tl.where(good, x - center, 0.0)
        sum1 += difference
        sum2 += difference * difference
        sum_abs += tl.where(good, tl.abs(x), 0.0)
        slots = _slots(raw, x, good, mask, CODE)
        if SHARED:
            count(slots)
        else:
            counts += tl.histogram(slots, 2048)
        raw = coming
    if SHARED:
        tl.debug_barrier()
        counts = counted(every)

    n_nan = tl.sum(tl.where(every == _NAN, counts, 0), axis=0)
    n_above = tl.sum(tl.where(every == _ABOVE, counts, 0), axis=0)
    n_below = tl.sum(tl.where(every == _BELOW, counts, 0), axis=0)
    n_zero = tl.sum(tl.where(every == _ZERO, counts, 0), axis=0)
    finite = n_all - n_nan - n_above - n_below
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
        for wide_base in range(0, n_all, LANES):
            wide_mask = wide_base + lane < n_all
            wide = read(address, start, wide_base + lane, wide_mask, tables, CODE).to(tl.float64)
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
    tl.store(out + 4, n_zero.to(tl.float64))
    tl.store(out + 5, least)
    tl.store(out + 6, most)
    tl.store(out + 7, mean)
    tl.store(out + 8, std)
    tl.store(out + 9, absolute)
    tl.atomic_add(hist + every, counts, mask=(counts > 0) & ((every & 1023) < _NAN), sem="relaxed")


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
        x = read(address, 0, at, mask, tables, CODE).to(FLOAT)
        good = mask & (tl.abs(x) < float("inf"))
        zeros += (mask & (x == 0.0)).to(tl.int32)
        finite += good.to(tl.int32)
        total += tl.where(good, x, 0.0)
    there, to = column < n_channels, sums + column * 3
    tl.atomic_add(to, tl.sum(zeros, axis=0).to(tl.float64), mask=there, sem="relaxed")
    tl.atomic_add(to + 1, tl.sum(total.to(tl.float64), axis=0), mask=there, sem="relaxed")
    tl.atomic_add(to + 2, tl.sum(finite, axis=0).to(tl.float64), mask=there, sem="relaxed")


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
    SHARED: tl.constexpr,
):
    """Many tensors of one type: what each program reads is in a table."""
    chunk = chunks + (tl.program_id(0) + first) * 4
    address = tl.load(chunk)
    start = tl.load(chunk + 1)
    stop = tl.load(chunk + 2)
    row = tl.load(chunk + 3)
    out = partials + (tl.program_id(0) + first) * 10
    bins = hist + row * 2048
    _measure_run(address, start, stop, tables, out, bins, CODE, FLOAT, LANES, SMALL, LARGE, TINY, SHARED)


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
    SHARED: tl.constexpr,
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
        _measure_run(address, start, stop, tables, row, bins, CODE, FLOAT, LANES, SMALL, LARGE, TINY, SHARED)
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
