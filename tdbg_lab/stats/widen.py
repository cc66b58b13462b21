"""numba kernels that read a block of any element type as float32 (and float64 where needed)."""

# ruff: noqa: C901, PLR0912 - numba compiles flat loops best

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from tdbg_lab.stats.dtypes import Code
from tdbg_lab.stats.jit import kernel, pointer

__all__ = ["widen32", "widen64"]

_FLOAT16 = int(Code.FLOAT16)
_BFLOAT16 = int(Code.BFLOAT16)
_INT8 = int(Code.INT8)
_UINT8 = int(Code.UINT8)
_BOOL = int(Code.BOOL)
_INT16 = int(Code.INT16)
_UINT16 = int(Code.UINT16)
_FLOAT64 = int(Code.FLOAT64)
_INT32 = int(Code.INT32)
_UINT32 = int(Code.UINT32)
_INT64 = int(Code.INT64)
_FLOAT8 = int(Code.FLOAT8_FIRST)
_i32 = np.int32
_SCALE16 = np.float32(2.0**-24)


@kernel()
def _half(half: Any, n: int, bits: Any, out: Any) -> None:
    """float16 by its bits; `bits` is `out` seen as int32. No subnormal float32 ever appears."""
    for i in range(n):
        h = _i32(half[i])
        body = _i32(h & _i32(0x7FFF))
        normal = _i32(_i32(body << _i32(13)) + _i32(112 << 23))
        special = _i32(normal + _i32(112 << 23))
        bits[i] = special if body >= _i32(0x7C00) else normal
    for i in range(n):
        h = _i32(half[i])
        body = _i32(h & _i32(0x7FFF))
        small = np.float32(body) * _SCALE16
        out[i] = small if body < _i32(0x0400) else out[i]
    for i in range(n):
        bits[i] = _i32(bits[i] | _i32(_i32(half[i]) << _i32(16)) & _i32(-2147483648))


@kernel()
def widen32(address: int, code: int, n: int, tables: Any, target: int) -> None:
    """Read `n` elements at `address` into float32 at `target`; exact for these types."""
    out = carray(pointer(target, np.float32), n)
    if code == _BFLOAT16:
        brain = carray(pointer(address, np.uint16), n)
        bits = carray(pointer(target, np.uint32), n)
        for i in range(n):
            bits[i] = np.uint32(brain[i]) << np.uint32(16)
    elif code == _FLOAT16:
        _half(carray(pointer(address, np.uint16), n), n, carray(pointer(target, np.int32), n), out)
    elif code >= _FLOAT8:
        table = tables[code - _FLOAT8]
        byte = carray(pointer(address, np.uint8), n)
        for i in range(n):
            out[i] = table[byte[i]]
    elif code == _INT8:
        signed8 = carray(pointer(address, np.int8), n)
        for i in range(n):
            out[i] = signed8[i]
    elif code == _UINT8:
        unsigned8 = carray(pointer(address, np.uint8), n)
        for i in range(n):
            out[i] = unsigned8[i]
    elif code == _BOOL:
        flag = carray(pointer(address, np.uint8), n)
        for i in range(n):
            out[i] = np.float32(1) if flag[i] else np.float32(0)
    elif code == _INT16:
        signed16 = carray(pointer(address, np.int16), n)
        for i in range(n):
            out[i] = signed16[i]
    else:
        unsigned16 = carray(pointer(address, np.uint16), n)
        for i in range(n):
            out[i] = unsigned16[i]


@kernel()
def widen64(address: int, code: int, n: int, wide_target: int, target: int) -> None:
    """Read `n` elements into float64 at one address and, rounded once, into float32 at another."""
    wide, out = carray(pointer(wide_target, np.float64), n), carray(pointer(target, np.float32), n)
    if code == _FLOAT64:
        double = carray(pointer(address, np.float64), n)
        for i in range(n):
            wide[i] = double[i]
            out[i] = np.float32(double[i])
    elif code == _INT32:
        signed32 = carray(pointer(address, np.int32), n)
        for i in range(n):
            wide[i] = np.float64(signed32[i])
            out[i] = np.float32(signed32[i])
    elif code == _UINT32:
        unsigned32 = carray(pointer(address, np.uint32), n)
        for i in range(n):
            wide[i] = np.float64(unsigned32[i])
            out[i] = np.float32(unsigned32[i])
    elif code == _INT64:
        signed64 = carray(pointer(address, np.int64), n)
        for i in range(n):
            wide[i] = np.float64(signed64[i])
            out[i] = np.float32(signed64[i])
    else:
        unsigned64 = carray(pointer(address, np.uint64), n)
        for i in range(n):
            wide[i] = np.float64(unsigned64[i])
            out[i] = np.float32(unsigned64[i])
