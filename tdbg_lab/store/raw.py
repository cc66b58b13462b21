"""Raw values: one safetensors file per step, mode and micro-step, written in the background."""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import Mode
from tdbg_lab.store.layout import _entries, open_regular
from tdbg_lab.store.limits import (
    MAX_NAME_CHARS,
    MAX_RAW_FILES,
    MAX_RAW_HEADER_BYTES,
    MAX_TENSORS,
    RAW_QUEUE_BYTES,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_FILE = re.compile(r"step-(\d{12,18})(?:-(eval|predict))?(?:-m(\d{1,9}))?\.safetensors")
_DTYPES: dict[str, str] = {
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
}
LABELS = "/labels"
"""Suffix of the labels recorded with a tensor."""


@dataclass(frozen=True, slots=True)
class RawFile:
    """One file of raw values."""

    step: int
    mode: Mode
    micro: int
    path: Path


def raw_name(step: int, mode: Mode, micro: int) -> str:
    """File name: ``step-000000000100.safetensors``, ``step-...-eval-m1.safetensors``."""
    part = "" if mode == Mode.TRAIN else f"-{mode}"
    return f"step-{step:012d}{part}{f'-m{micro}' if micro else ''}.safetensors"


def list_raw(rank_directory: Path) -> list[RawFile]:
    """Files of raw values of one rank, by step."""
    directory = rank_directory / "raw"
    if directory.is_symlink():
        return []
    found: list[RawFile] = []
    for entry in _entries(directory):
        match = _FILE.fullmatch(entry.name)
        if match and entry.is_file(follow_symlinks=False) and len(found) < MAX_RAW_FILES:
            mode = Mode(match[2] or "train")
            found.append(RawFile(int(match[1]), mode, int(match[3] or 0), directory / entry.name))
    return sorted(found, key=lambda file: (file.step, str(file.mode), file.micro))


class RawWriter:
    """Writes raw values in a background thread; drops and counts what the queue cannot take."""

    def __init__(self, rank_directory: Path, queue_bytes: int = RAW_QUEUE_BYTES) -> None:
        self._directory = rank_directory / "raw"
        self._queue: queue.SimpleQueue[tuple[str, dict[str, str], dict[str, NDArray[Any]], int] | None]
        self._queue = queue.SimpleQueue()
        self._limit = queue_bytes
        self._waiting = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._closed = False
        self.bytes_written = 0
        self.dropped = 0
        """Tensors that were not written."""
        self.failed: str | None = None
        """Why the last write failed."""

    def write(self, step: int, tensors: Mapping[str, NDArray[Any]], mode: Mode, micro: int) -> None:
        """Queue copies of `tensors`; returns at once."""
        size = sum(array.nbytes for array in tensors.values())
        with self._changed:
            if (
                self._closed
                or os.getpid() != self._pid
                or (self._waiting and self._waiting + size > self._limit)
            ):
                self.dropped += len(tensors)
                return
            self._waiting += size
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tdbg-raw", daemon=True)
                self._thread.start()
        copies = {name: np.array(array, order="C", copy=True) for name, array in tensors.items()}
        metadata = {"mode": str(mode), "micro": str(micro), "time_ns": str(time.time_ns())}
        self._queue.put((raw_name(step, mode, micro), metadata, copies, size))

    def flush(self, timeout_s: float = 60.0) -> None:
        """Wait until everything queued is written, at most `timeout_s`."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting == 0, timeout_s)

    def close(self, timeout_s: float = 60.0) -> None:
        """Write what is queued and end the thread. Idempotent."""
        with self._changed:
            thread, self._thread, self._closed = self._thread, None, True
        if thread is not None:
            self._queue.put(None)
            thread.join(timeout_s)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            name, metadata, tensors, size = item
            try:
                self._write(name, metadata, tensors)
            except Exception as error:  # noqa: BLE001 - told through `failed`, training goes on
                self.failed = str(error)
                self.dropped += len(tensors)
            with self._changed:
                self._waiting -= size
                self._changed.notify_all()

    def _write(self, name: str, metadata: dict[str, str], tensors: dict[str, NDArray[Any]]) -> None:
        from safetensors.numpy import save_file

        self._directory.mkdir(exist_ok=True)
        path = self._directory / name
        if path.exists():  # several calls at one step share its file
            tensors = {**{key: read_raw(path, key) for key in raw_header(path)}, **tensors}
        temporary = path.with_name(f".{name}.tmp")
        try:
            save_file(tensors, temporary, metadata)
            self.bytes_written += temporary.stat().st_size
            temporary.replace(path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()


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
        size = math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize
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
    array = np.frombuffer(data, _DTYPES[entry.dtype])
    if entry.dtype == "BF16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.reshape(entry.shape)
