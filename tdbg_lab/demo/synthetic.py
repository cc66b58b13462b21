"""A made-up training that takes its time: ``python -m tdbg_lab.demo.synthetic DIRECTORY``."""

from __future__ import annotations

import argparse
import time

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
    options = parser.parse_args()
    training = FakeTraining(options.directory, layers=6, modes=("train", "eval"), name="synthetic")
    status = "finished"
    for step in range(options.steps):
        training.step()
        if step == options.steps // 10:
            training.find()
        requests = pending(training.path)
        if requests:
            for each in requests:
                answer(training.path, each.id, "done", "Stopped.")
            status = "stopped"
            break
        time.sleep(1 / options.rate)
    training.end(status)


if __name__ == "__main__":
    main()
