"""CRC-32C, masked as in event files."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["masked_crc"]

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8


@cache
def _table() -> Any:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


@cache
def _loop() -> Callable[[Any, Any], int]:
    """The loop over bytes, compiled: in Python it is the dearest part of an export."""
    from numba import njit

    def loop(data: Any, table: Any) -> Any:
        crc = np.uint32(0xFFFFFFFF)
        for byte in data:
            crc = table[(crc ^ byte) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
        return crc

    compiled: Callable[[Any, Any], int] = njit(loop)
    return compiled


def masked_crc(data: bytes) -> int:
    """The checksum that stands in a record."""
    crc = int(_loop()(np.frombuffer(data, np.uint8), _table())) ^ 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF
