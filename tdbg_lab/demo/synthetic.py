"""A made-up training that takes its time: ``python -m tdbg_lab.demo.synthetic DIRECTORY``."""

from __future__ import annotations

import argparse
import signal
import time

from tdbg_lab.demo.tether import end_with
from tdbg_lab.store import pending
from tdbg_lab.store.control import answer
from tdbg_lab.testing.fake import FakeTraining

__all__ = ["main"]

STEPS = 2000
STEPS_PER_SECOND = 5.0


def main() -> None:
    """Write steps until the end, or until somebody asks to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--rate", type=float, default=STEPS_PER_SECOND, help="steps a second")
    parser.add_argument("--with", dest="pid", type=int, help="end with the process of this number")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupt)
    if options.pid is not None:
        end_with(options.pid)
    training = FakeTraining(
        options.directory, layers=6, modes=("train", "eval"), name="synthetic", step_s=1 / options.rate
    )
    status = "stopped"
    try:
        status = _train(training, options.steps, options.rate)
    except KeyboardInterrupt:  # the demo ends
        pass
    finally:
        training.end(status)


def _train(training: FakeTraining, steps: int, rate: float) -> str:
    """Write steps; how it ended."""
    for step in range(steps):
        training.step()
        if step == steps // 10:
            training.find()
        if _is_stopped(training):
            return "stopped"
        time.sleep(1 / rate)
    return "finished"


def _is_stopped(training: FakeTraining) -> bool:
    """Answer what was asked for; whether it was a stop."""
    stopped = False
    for each in pending(training.path):
        is_stop = each.kind == "stop"
        text = "Stopped." if is_stop else "This training is made up: it has no settings."
        answer(training.path, each.id, "done" if is_stop else "refused", text)
        stopped |= is_stop
    return stopped


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
