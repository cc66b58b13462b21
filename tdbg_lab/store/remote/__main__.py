"""The sender: ``python -m tdbg_lab.store.remote RUN_DIR [--flush SECONDS]``.

Sends a run of the spool until it has ended and all of it is sent; beside it, once, what earlier
trainings left in the spool. Ends when another sender is at the run. Storage options come as one JSON
object on standard input: they are secret, so neither the command line nor a file holds them. Exit
code 0 when the run was sent.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.background import start_thread, stay_behind
from tdbg_lab.errors import TdbgError
from tdbg_lab.store.remote.sending import send
from tdbg_lab.store.remote.service import FLUSH_S, unsent_runs
from tdbg_lab.store.remote.spool import Spooled, tidy

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

log = logging.getLogger("tdbg_lab")

OTHERS_WAIT_S = 60.0
_MAX_OPTIONS_BYTES = 2**20


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sender; gives the exit code."""
    options = _parser().parse_args(argv)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
    given = _given()
    stop = threading.Event()
    stay_behind(stop, nice=10)
    send_earlier = partial(_send_earlier, options.run, given, stop)
    earlier = start_thread(send_earlier, "tdbg-send-earlier")
    problem = _send(Spooled(options.run), given, stop, flush_s=options.flush)
    if earlier is None:  # no more threads: after ours
        send_earlier()
    else:
        earlier.join()
    return 0 if problem is None else 1


def _send(spooled: Spooled, given: dict[str, Any], stop: threading.Event, **how: Any) -> str | None:
    """Send one run; why not all of it was sent.

    Who sends what an earlier training left of the same run soon ends, and we must not: so wait a while.
    """
    deadline = time.monotonic() + OTHERS_WAIT_S
    try:
        outcome = send(spooled, given, stop=stop, **how)
        while outcome.busy and time.monotonic() < deadline and not stop.wait(1.0):
            outcome = send(spooled, given, stop=stop, **how)
        problem = outcome.problem
    except (TdbgError, OSError) as error:
        problem = str(error)
        with contextlib.suppress(OSError):  # the training process looks there, and tells it
            spooled.set_state(replace(spooled.state(), problem=problem))
    if problem is not None:
        log.warning("%s: %s", spooled.name, problem)
    return problem


def _send_earlier(own: Path, given: dict[str, Any], stop: threading.Event) -> None:
    """Send what earlier trainings left, one try each, and make room. Runs in a thread."""
    for spooled in unsent_runs():
        if not stop.is_set() and spooled.path != own and not spooled.is_running():
            with contextlib.suppress(TdbgError, OSError):  # it stays for the next one
                send(spooled, given, stop=stop, once=True)
    tidy()


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
    parser.add_argument("run", type=Path, metavar="RUN_DIR", help="run directory in the spool")
    parser.add_argument("--flush", type=_interval, default=FLUSH_S, help="seconds between passes (2)")
    return parser


def _interval(text: str) -> float:
    value = float(text)
    if not 0.05 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"an interval of {value} s is not within 0.05 s and 1 h")
    return value


if __name__ == "__main__":
    sys.exit(main())
