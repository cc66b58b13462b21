"""Writing raw values: one safetensors file per step, mode and micro-step, in the background."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.background import start_thread
from tdbg_lab.errors import StoreError
from tdbg_lab.store.file_moves import replace_file
from tdbg_lab.store.layout import make_subfolder
from tdbg_lab.store.limits import MAX_NAME_CHARS, RAW_QUEUE_BYTES
from tdbg_lab.store.outage import Outage
from tdbg_lab.store.raw import DTYPES, raw_header, raw_name, read_raw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from tdbg_lab.records import Mode

_Item = tuple[str, dict[str, str], dict[str, "NDArray[Any]"], int]
_WRITABLE = frozenset(np.dtype(code) for name, code in DTYPES.items() if name not in {"BF16", "C64"})


class RawWriter:
    """Writes raw values in a background thread; drops and counts what the queue cannot take.

    After a failure all is dropped and counted, and now and then it is tried again. `is_ours` tells whether
    the directory is still that of our run, asked before.
    """

    def __init__(
        self,
        rank_directory: Path,
        queue_bytes: int = RAW_QUEUE_BYTES,
        *,
        attempt: int = 0,
        is_ours: Callable[[], bool] = lambda: True,
    ) -> None:
        self._rank_directory = rank_directory
        self._attempt = attempt
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._limit = queue_bytes
        self._waiting = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._closed = False
        self._is_ours = is_ours
        self._outage = Outage()
        self._to_tell: str | None = None
        """Why writing fails, until somebody was told."""
        self.gaps: list[str] = []
        """What is missing, of each failure that is over; who reads it takes it."""
        self.bytes_written = 0
        self.dropped = 0
        """Tensors that were not written: no room in the queue, a type no file can hold, a failure."""
        self.left_out: str | None = None
        """Why some of them were, other than a failure: the first reason there was."""

    def write(self, step: int, tensors: Mapping[str, NDArray[Any]], mode: Mode, micro: int) -> None:
        """Queue copies of `tensors`; returns at once.

        Raises
        ------
        StoreError
            When an earlier write failed, once until one goes well again.
        """
        if os.getpid() != self._pid:  # before the lock: a fork may have copied it locked
            return
        fitting = {name: array for name, array in tensors.items() if _fits(name, array)}
        size = sum(array.nbytes for array in fitting.values())
        self._start()
        with self._changed:
            refused = self._closed or self._outage.blocks
            if refused or (self._waiting and self._waiting + size > self._limit):
                self._drop(len(tensors))
                self.left_out = self.left_out or (None if refused else self._full())
                self._tell()
                return
            if len(fitting) < len(tensors):
                self.dropped += len(tensors) - len(fitting)
                self.left_out = self.left_out or _unfit(tensors, fitting)
            self._waiting += size
        copies = {
            name: np.array(array, _native(array), order="C", copy=True) for name, array in fitting.items()
        }
        metadata = {"mode": str(mode), "micro": str(micro), "time_ns": str(time.time_ns())}
        self._queue.put((raw_name(step, mode, micro, self._attempt), metadata, copies, size))

    def flush(self, timeout_s: float = 60.0) -> None:
        """Wait until everything queued is written, at most `timeout_s`."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting == 0 or self._thread is None, timeout_s)

    def close(self, timeout_s: float = 60.0) -> None:
        """Write what is queued and end the thread. Idempotent."""
        if os.getpid() != self._pid:
            return
        with self._changed:
            thread, self._thread, self._closed = self._thread, None, True
        self._queue.put(None)
        if thread is not None:
            thread.join(timeout_s)
        elif self._waiting:
            self._run()

    def _full(self) -> str:
        return (
            f"raw values are left out where {self._limit >> 20} MB of them wait for the disk, rather than "
            "let the training wait for it: save fewer of them, or less often"
        )

    def _drop(self, count: int) -> None:
        self.dropped += count
        if self._outage.reason is not None:
            self._outage.miss(count)

    def _tell(self) -> None:
        reason, self._to_tell = self._to_tell, None
        if reason is not None:
            raise StoreError(f"Cannot write raw values: {reason}.")

    def _start(self) -> None:
        with self._changed:
            if self._thread is None and not self._closed:
                self._thread = start_thread(self._run, "tdbg-raw")  # else the next values try again

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            name, metadata, tensors, size = item
            try:
                self._try(name, metadata, tensors)
            except Exception as error:  # noqa: BLE001 - told by the next `write`, training goes on
                reason = getattr(error, "strerror", None) or _first_line(error)
                if self._outage.begin(reason):
                    self._to_tell = reason
                self._drop(len(tensors))
            with self._changed:
                self._waiting -= size
                self._changed.notify_all()

    def _try(self, name: str, metadata: dict[str, str], tensors: dict[str, NDArray[Any]]) -> None:
        if self._outage.blocks:
            self._drop(len(tensors))
            return
        if self._outage.reason is not None and not self._is_ours():
            raise FileNotFoundError(2, "the run directory was deleted")
        self._write(name, metadata, tensors)
        if self._outage.reason is not None:
            self.gaps.append(self._outage.end("raw values"))

    def _write(self, name: str, metadata: dict[str, str], tensors: dict[str, NDArray[Any]]) -> None:
        from safetensors.numpy import save_file

        path = make_subfolder(self._rank_directory, "raw") / name
        if path.exists():  # several calls at one step share its file
            tensors = {**{key: read_raw(path, key) for key in raw_header(path)}, **tensors}
        temporary = path.with_name(f".{name}.tmp")
        try:
            save_file(tensors, temporary, metadata)
            self.bytes_written += temporary.stat().st_size
            replace_file(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _unfit(tensors: Mapping[str, NDArray[Any]], fitting: Mapping[str, NDArray[Any]]) -> str:
    name = next(name for name in tensors if name not in fitting)
    too_long = len(name) > MAX_NAME_CHARS
    why = f"a name of {len(name):,} characters" if too_long else f"values of type {tensors[name].dtype}"
    return f"raw values of {name[:80]} are left out: no file holds {why}"


def _fits(name: str, array: NDArray[Any]) -> bool:
    return _native(array) in _WRITABLE and len(name) <= MAX_NAME_CHARS


def _native(array: NDArray[Any]) -> np.dtype[Any]:
    return array.dtype.newbyteorder("=")
