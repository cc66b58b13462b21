"""Records of an event file."""

from __future__ import annotations

import struct
from typing import IO, TYPE_CHECKING

from tdbg_lab.exchange.tensorboard.checksum import masked_crc

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BrokenFileError", "read_records", "write_record"]

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
_MAX_RECORD_BYTES = 256 * 2**20


class BrokenFileError(ValueError):
    """The file goes on with something that is no record. What came before it stands."""


def write_record(file: IO[bytes], data: bytes) -> None:
    """Append a record."""
    length = struct.pack("<Q", len(data))
    file.write(length + _FOOTER.pack(masked_crc(length)) + data + _FOOTER.pack(masked_crc(data)))


def read_records(file: IO[bytes]) -> Iterator[bytes]:
    """The records of a file; a record that is being written ends it.

    Only the checksum of a length is verified: it tells a file that is no event file from one that
    is, and costs nothing.

    Raises
    ------
    BrokenFileError
        It goes on with something that is no record.
    """
    while True:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        length, checksum = _HEADER.unpack(header)
        if checksum != masked_crc(header[:8]):
            raise BrokenFileError("a record's length does not fit its checksum")
        if length > _MAX_RECORD_BYTES:
            raise BrokenFileError(f"a record has {length} bytes, more than {_MAX_RECORD_BYTES}")
        data = file.read(length + _FOOTER.size)
        if len(data) < length + _FOOTER.size:
            return
        yield data[:length]
