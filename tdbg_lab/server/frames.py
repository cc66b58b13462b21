"""What a server and its workers tell each other: frames of a length (8 bytes, little endian) and a pickle.

Both ends are ours; nothing from a run directory is ever unpickled.
"""

from __future__ import annotations

import pickle
from typing import Any, BinaryIO

__all__ = ["read_frame", "write_frame"]

_LENGTH_BYTES = 8


def write_frame(stream: BinaryIO, value: object) -> None:
    """Write one frame."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(len(data).to_bytes(_LENGTH_BYTES, "little") + data)
    stream.flush()


def read_frame(stream: BinaryIO) -> Any:
    """Read one frame.

    Raises
    ------
    EOFError
        When the other end is gone, be it in the middle of a frame.
    """
    head = stream.read(_LENGTH_BYTES)
    length = int.from_bytes(head, "little")
    data = stream.read(length) if len(head) == _LENGTH_BYTES else b""
    if len(head) < _LENGTH_BYTES or len(data) < length:
        raise EOFError
    return pickle.loads(data)  # noqa: S301 - written by the server that started us, or by our own worker
