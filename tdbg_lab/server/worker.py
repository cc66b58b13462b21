"""The process that does long work, one job at a time: ``python -m tdbg_lab.server.worker``.

Talks over its standard streams with the server that started it, see `tdbg_lab.server.frames`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any, BinaryIO

from tdbg_lab.server.frames import read_frame, write_frame

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["main"]

PROGRESS_INTERVAL_S = 0.1


class Worker:
    """Takes requests one after the other; a second thread listens for cancellations."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink
        self._requests: list[dict[str, Any]] = []
        self._cancelled: set[str] = set()
        self._ready = threading.Condition()

    def listen(self) -> None:
        """Read requests until the server is gone, then end the process."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                request = read_frame(self._source)
                with self._ready:
                    if "cancel" in request:
                        self._cancelled.add(request["cancel"])
                    else:
                        self._requests.append(request)
                    self._ready.notify()
        os._exit(0)

    def work(self) -> None:
        """Answer requests for ever; what keeps it from that ends the process, so that nobody waits for it."""
        try:
            while True:
                with self._ready:
                    while not self._requests:
                        self._ready.wait()
                    request = self._requests.pop(0)
                self._answer(request)
        except BaseException:  # noqa: BLE001 - such as an import while the package is being replaced
            traceback.print_exc()
            os._exit(1)

    def _answer(self, request: dict[str, Any]) -> None:
        from tdbg_lab.errors import TdbgError
        from tdbg_lab.views import Cancelled

        job = request["job"]
        reply: dict[str, Any] = {"job": job}
        try:
            reply["data"] = self._done(request, self._progress(job), lambda: job in self._cancelled)
        except Cancelled:
            reply["cancelled"] = True
        except TdbgError as error:
            reply["error"] = str(error)
        except Exception as error:  # noqa: BLE001 - the boundary of this process
            reply["error"] = f"The work failed: {type(error).__name__}."
            reply["detail"] = repr(error)
        self._cancelled.discard(job)
        write_frame(self._sink, reply)

    @staticmethod
    def _done(
        request: dict[str, Any], progress: Callable[[float, str], None], cancelled: Callable[[], bool]
    ) -> Any:
        """Do what is asked for: a rule to check again, a report to write, or a view to prepare."""
        if "rule" in request:
            from tdbg_lab.server.recheck import check_again

            return check_again(
                request["path"],
                request["rule"],
                request["parameters"],
                request["last_step"],
                progress=progress,
                cancelled=cancelled,
            )
        if "report" in request:
            from tdbg_lab.server.report import make_report

            return make_report(
                request["path"],
                request["report"],
                request["name"],
                progress=progress,
                cancelled=cancelled,
            )
        from tdbg_lab.views import prepare_view

        return prepare_view(
            request["path"],
            request["view"],
            request["params"],
            progress=progress,
            cancelled=cancelled,
            previous=request["previous"],
        )

    def _progress(self, job: str) -> Callable[[float, str], None]:
        last_s = 0.0

        def tell(share: float, message: str) -> None:
            nonlocal last_s
            now_s = time.monotonic()
            if now_s - last_s >= PROGRESS_INTERVAL_S:
                last_s = now_s
                write_frame(self._sink, {"job": job, "progress": float(share), "message": str(message)[:200]})

        return tell


def main() -> None:
    """Serve until standard input ends. What libraries print goes to standard error."""
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)  # training on the same machine goes first
    worker = Worker(os.fdopen(os.dup(sys.stdin.fileno()), "rb"), sink)
    threading.Thread(target=worker.work, daemon=True).start()
    worker.listen()


if __name__ == "__main__":
    main()
