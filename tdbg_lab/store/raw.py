"""Raw values: one safetensors file per step, mode and micro-step. Names and reading."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tdbg_lab.records import Mode
from tdbg_lab.store.attempts import read_attempts
from tdbg_lab.store.layout import entries, open_regular, subfolder
from tdbg_lab.store.limits import (
    MAX_NAME_CHARS,
    MAX_RAW_FILES,
    MAX_RAW_HEADER_BYTES,
    MAX_TENSORS,
)
from tdbg_lab.store.schema import MODE_CODE

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_FILE = re.compile(r"step-(\d{12,18})(?:-(eval|predict))?(?:-m(\d{1,9}))?(?:-a(\d{1,9}))?\.safetensors")
DTYPES: Final[dict[str, str]] = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
    "C64": "<c8",
}
"""Type codes of safetensors and of numpy."""
LABELS = "/labels"
"""Suffix of the labels recorded with a tensor."""


@dataclass(frozen=True, slots=True)
class RawFile:
    """One file of raw values."""

    step: int
    mode: Mode
    micro: int
    attempt: int
    """First segment of the attempt that wrote it, see `tdbg_lab.store.attempts`; 0 of the first one."""
    path: Path


def raw_name(step: int, mode: Mode, micro: int, attempt: int = 0) -> str:
    """File name: ``step-000000000100.safetensors``, ``step-...-eval-m1.safetensors``, ``step-...-a7...``."""
    parts = (
        "" if mode == Mode.TRAIN else f"-{mode}",
        f"-m{micro}" if micro else "",
        f"-a{attempt}" if attempt else "",
    )
    return f"step-{step:012d}{''.join(parts)}.safetensors"


def list_raw(rank_directory: Path) -> list[RawFile]:
    """Files of raw values of one rank, by step; of several attempts at a step the latest."""
    directory = subfolder(rank_directory, "raw")
    if directory is None:
        return []
    attempts = read_attempts(rank_directory)
    found: dict[tuple[int, Mode, int], RawFile] = {}
    for entry in entries(directory):
        match = _FILE.fullmatch(entry.name)
        if not match or not entry.is_file(follow_symlinks=False) or len(found) >= MAX_RAW_FILES:
            continue
        step, mode = int(match[1]), Mode(match[2] or "train")
        file = RawFile(step, mode, int(match[3] or 0), int(match[4] or 0), directory / entry.name)
        if step < attempts.end(file.attempt, MODE_CODE[str(mode)]):
            place = step, mode, file.micro
            found[place] = max(file, found.get(place, file), key=lambda one: one.attempt)
    return sorted(found.values(), key=lambda file: (file.step, str(file.mode), file.micro))


@dataclass(frozen=True, slots=True)
class RawEntry:
    """Where a tensor stands in its file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    """Offset in the file, bytes."""
    size: int
    """Bytes."""


def raw_header(path: Path) -> dict[str, RawEntry]:
    """Tensors of a file of raw values.

    Raises
    ------
    OSError, ValueError
        If it cannot be read or is not a valid safetensors file.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        total = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(MAX_RAW_HEADER_BYTES, total):
            raise ValueError(f"{path.name} is not a safetensors file")
        try:
            header = json.loads(file.read(length))
        except RecursionError as error:
            raise ValueError(f"{path.name} has a broken header") from error
    if not isinstance(header, dict) or len(header) > MAX_TENSORS:
        raise ValueError(f"{path.name} has a broken header")
    header.pop("__metadata__", None)
    return {
        name: _entry(value, 8 + length, total)
        for name, value in header.items()
        if len(name) <= MAX_NAME_CHARS
    }


def _entry(value: Any, base: int, total: int) -> RawEntry:
    try:
        dtype, shape = str(value["dtype"]), tuple(int(n) for n in value["shape"])
        start, end = (int(n) for n in value["data_offsets"])
        size = math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("a tensor is described wrongly") from error
    if min(shape, default=0) < 0 or start < 0 or end - start != size or base + end > total:
        raise ValueError("a tensor lies outside its file")
    return RawEntry(dtype, shape, base + start, size)


def read_raw(path: Path, name: str) -> NDArray[Any]:
    """Raw value of a tensor; bfloat16 comes as float32.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read or is not a valid safetensors file.
    KeyError
        If it does not hold the tensor.
    """
    entry = raw_header(path)[name]
    with os.fdopen(open_regular(path), "rb") as file:
        file.seek(entry.start)
        data = bytearray(file.read(entry.size))
    array = np.frombuffer(data, DTYPES[entry.dtype])
    if entry.dtype == "BF16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.reshape(entry.shape)
