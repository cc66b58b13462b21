"""What the elements of a tensor are: the codes that the kernels switch on, and the float8 tables."""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CODES", "FLOAT8", "Code", "float8_tables"]


class Code(IntEnum):
    """Element type of a block of memory. Codes from `FLOAT8_FIRST` on index `float8_tables`."""

    FLOAT32 = 0
    FLOAT16 = 1
    BFLOAT16 = 2
    INT8 = 3
    UINT8 = 4
    BOOL = 5
    INT16 = 6
    UINT16 = 7
    FLOAT64 = 8
    """From here on, elements do not fit into float32 exactly."""
    INT32 = 9
    UINT32 = 10
    INT64 = 11
    UINT64 = 12
    FLOAT8_FIRST = 16


FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
"""Names of the float8 types, in the order of `float8_tables`."""

CODES: dict[str, int] = {
    **{code.name.lower(): int(code) for code in Code if code is not Code.FLOAT8_FIRST},
    **{name: int(Code.FLOAT8_FIRST) + index for index, name in enumerate(FLOAT8)},
}
"""Code of each element type, by its numpy (and torch) name."""


@cache
def float8_tables() -> NDArray[np.float32]:
    """Value of each byte in each float8 type, shape ``(5, 256)``; read-only."""
    tables = np.stack(
        [
            _decoded(exponent_bits=4, bias=7, nan=(0x7F, 0xFF)),
            _decoded(exponent_bits=5, bias=15, nan=(0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF), inf=(0x7C, 0xFC)),
            _decoded(exponent_bits=4, bias=8, nan=(0x80,)),
            _decoded(exponent_bits=5, bias=16, nan=(0x80,)),
            np.append(np.exp2(np.arange(255) - 127.0), np.nan),
        ]
    ).astype(np.float32)
    tables.flags.writeable = False
    return tables


def _decoded(
    *, exponent_bits: int, bias: int, nan: tuple[int, ...], inf: tuple[int, ...] = ()
) -> NDArray[np.float64]:
    """Values of the 256 bytes of an 8-bit float with a sign bit, shape ``(256,)``."""
    byte = np.arange(256)
    mantissa_bits = 7 - exponent_bits
    exponent = (byte >> mantissa_bits) & ((1 << exponent_bits) - 1)
    fraction = (byte & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    magnitude = np.where(
        exponent == 0, np.exp2(1.0 - bias) * fraction, np.exp2(exponent - float(bias)) * (1 + fraction)
    )
    values: NDArray[np.float64] = np.where(byte >= 128, -magnitude, magnitude)
    values[list(nan)] = np.nan
    for code in inf:
        values[code] = np.inf if code < 128 else -np.inf
    return values
