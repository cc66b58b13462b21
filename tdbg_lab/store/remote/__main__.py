"""The sender: ``python -m tdbg_lab.store.remote RUN_DIR [--flush SECONDS]``.

Sends a run of the spool until it has ended and all of it is sent; ends at once when another sender is
at it. Storage options come as one JSON object on standard input: they are secret, so neither the
command line nor a file holds them. With ``--leftovers`` instead of a directory it sends once what
earlier trainings left in the spool. Exit code 0 when everything was sent.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import TdbgError
from tdbg_lab.store.remote.objects import Objects
from tdbg_lab.store.remote.options import storage_options
from tdbg_lab.store.remote.service import FLUSH_S, Service, unsent_runs
from tdbg_lab.store.remote.spool import Spooled
from tdbg_lab.store.remote.uploader import Uploader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.store.remote.url import StoreUrl

__all__ = ["main", "send"]

log = logging.getLogger("tdbg_lab")

_MAX_OPTIONS_BYTES = 2**20


def send(
    spooled: Spooled,
    given: dict[str, Any] | None = None,
    *,
    stop: threading.Event | None = None,
    flush_s: float = FLUSH_S,
    once: bool = False,
) -> str | None:
    """Send one run, unless another sender is at it; why not all of it was sent, else None.

    Raises
    ------
    TdbgError
        If the options are wrong.
    OSError
        If the run directory is no longer there.
    """
    lock = spooled.lock()
    if not lock.acquire():
        return None
    try:

        def connect(url: StoreUrl) -> Objects:
            return Objects(url, storage_options(url, given))

        service = Service(spooled, Uploader(spooled, connect), flush_s=flush_s, once=once)
        sent = service.run(stop or threading.Event())
        return None if sent else service.problem or "The sending was ended before everything was sent."
    finally:
        lock.release()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sender; gives the exit code."""
    options = _parser().parse_args(argv)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
    given = _given()
    stop = threading.Event()
    _hear_signals(stop)
    runs = list(unsent_runs()) if options.leftovers else [Spooled(options.run)]
    problems = []
    for spooled in runs:
        try:
            problem = send(spooled, given, stop=stop, flush_s=options.flush, once=options.leftovers)
        except (TdbgError, OSError) as error:
            problem = str(error)
        if problem is not None:
            problems.append(problem)
            log.warning("%s: %s", spooled.name, problem)
    return 1 if problems else 0


def _given() -> dict[str, Any]:
    """Options from standard input; none when nothing comes."""
    if sys.stdin is None or sys.stdin.isatty():
        return {}
    try:
        value = json.loads(sys.stdin.buffer.read(_MAX_OPTIONS_BYTES) or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tdbg_lab.store.remote", description="Send a run.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("run", type=Path, nargs="?", metavar="RUN_DIR", help="run directory in the spool")
    what.add_argument("--leftovers", action="store_true", help="send once what earlier trainings left")
    parser.add_argument("--flush", type=_interval, default=FLUSH_S, help="seconds between passes (2)")
    return parser


def _interval(text: str) -> float:
    value = float(text)
    if not 0.05 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"an interval of {value} s is not within 0.05 s and 1 h")
    return value


def _hear_signals(stop: threading.Event) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches the whole group
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    if hasattr(os, "nice"):
        os.nice(10)  # training comes first


if __name__ == "__main__":
    sys.exit(main())
