"""The system sampler: ``python -m tdbg_lab.profiler RUN_DIR --pid PID [--interval 0.5] [--rank 0]``.

Start it with ``stdin`` and ``stdout`` closed and ``start_new_session=True``. It ends by itself when
the process is gone, when ``run.json`` says the run has ended, and when the run directory is
deleted; an interrupt from the keyboard is not meant for it. Exit code 0 in each of these cases.
"""

from __future__ import annotations

import argparse
import logging
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from tdbg_lab.background import stay_behind
from tdbg_lab.errors import StoreError
from tdbg_lab.profiler.clock import ClockProbe
from tdbg_lab.profiler.gpu import GpuProbe
from tdbg_lab.profiler.host import HostProbe
from tdbg_lab.profiler.lifetime import Lifetime, find_process
from tdbg_lab.profiler.process import ProcessProbe
from tdbg_lab.profiler.sampler import Sampler
from tdbg_lab.store import SystemWriter
from tdbg_lab.store.machines import MachineFacts, write_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.profiler.probe import Probe

log = logging.getLogger("tdbg_lab.profiler")

_MIN_INTERVAL_S = 0.05


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sampler; gives the exit code."""
    options = _parser().parse_args(argv)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
    stop = threading.Event()
    stay_behind(stop, nice=5)
    process = find_process(options.pid)
    lifetime = Lifetime(options.run, process)
    if lifetime.over() is not None or process is None:
        return 0
    own = ProcessProbe(process)
    probes: list[Probe] = [HostProbe(), own, ClockProbe()]
    gpu, problem = GpuProbe.find(own=own.pids)
    if gpu is not None:
        probes.append(gpu)
    try:
        writer = SystemWriter(options.run, rank=options.rank)
        facts = MachineFacts(
            rank=options.rank,
            host=socket.gethostname(),
            interval_s=options.interval,
            gpus=tuple(gpu.devices) if gpu is not None else (),
            problem=problem,
        )
        write_machine(writer.path, facts)
    except StoreError as error:
        log.warning("No system metrics: %s", error)
        return 1
    reason = Sampler(probes, writer, lifetime.over, interval_s=options.interval).run(stop)
    log.debug("Ended: %s", reason)
    if gpu is not None:
        gpu.close()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tdbg_lab.profiler", description="Sample system metrics.")
    parser.add_argument("run", type=Path, metavar="RUN_DIR", help="run directory to write to")
    parser.add_argument("--pid", type=int, required=True, help="training process to accompany")
    parser.add_argument("--interval", type=_interval, default=0.5, help="seconds between samples (0.5)")
    parser.add_argument("--rank", type=int, default=0, help="rank whose directory is written to (0)")
    return parser


def _interval(text: str) -> float:
    value = float(text)
    if not _MIN_INTERVAL_S <= value <= 3600:
        raise argparse.ArgumentTypeError(
            f"an interval of {value} s is not within {_MIN_INTERVAL_S} s and 1 h"
        )
    return value


if __name__ == "__main__":
    sys.exit(main())
