"""The server's end of one worker process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from tdbg_lab.background import start_thread
from tdbg_lab.server.frames import read_frame, write_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["WorkerProcess"]

log = logging.getLogger(__name__)


class WorkerProcess:
    """Starts a worker and reads its frames in a thread.

    Parameters
    ----------
    on_frame
        Called on the event loop with each frame.
    on_exit
        Called on the event loop when the process has ended, for whatever reason.

    Raises
    ------
    OSError
        If no process or no thread can be started.
    """

    def __init__(
        self, *, on_frame: Callable[[Mapping[str, Any]], None], on_exit: Callable[[WorkerProcess], None]
    ) -> None:
        self.job: str | None = None
        """Id of the job it works on."""
        self._loop = asyncio.get_running_loop()
        self._on_frame = on_frame
        self._on_exit = on_exit
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tdbg_lab.server.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._stdin = cast("BinaryIO", self._process.stdin)
        self._stdout = cast("BinaryIO", self._process.stdout)
        if start_thread(self._read, "tdbg-worker") is None:
            with self._process:
                self._process.kill()
            raise OSError("no more threads may be started")

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def send(self, frame: Mapping[str, Any]) -> None:
        """Write a frame; blocks while the pipe is full, so call it in a thread when it is large."""
        try:
            with self._lock:
                write_frame(self._stdin, frame)
        except OSError:  # it is gone: on_exit says so
            log.debug("Worker %d is gone", self.pid)

    def kill(self) -> None:
        """End the process at once; twice does no harm."""
        self._process.kill()

    def _read(self) -> None:
        try:
            while True:
                frame = read_frame(self._stdout)
                self._loop.call_soon_threadsafe(self._on_frame, frame)
        except (EOFError, OSError, RuntimeError):  # ended, or the loop is closed
            self._process.kill()
        self._process.wait()
        for stream in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):  # the pipe is broken, which is no news
                stream.close()
        try:
            self._loop.call_soon_threadsafe(self._on_exit, self)
        except RuntimeError:
            log.debug("Worker %d outlived the event loop", self.pid)
