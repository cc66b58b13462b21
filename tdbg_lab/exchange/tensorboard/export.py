"""Writes a run as event files: a folder for each mode, numbers as scalars, the rest as histograms."""

from __future__ import annotations

import time
from typing import IO, TYPE_CHECKING

import numpy as np

from tdbg_lab.exchange.numbers import is_number
from tdbg_lab.exchange.target import claim_file, claim_folder
from tdbg_lab.exchange.tensorboard.buckets import buckets_of
from tdbg_lab.exchange.tensorboard.events import Histogram, file_version, histogram_event, scalar_event
from tdbg_lab.exchange.tensorboard.records import write_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tdbg_lab.exchange.exports import Choice
    from tdbg_lab.records import Mode, StatsBlock, TensorKey
    from tdbg_lab.run import Run

__all__ = ["write"]

_STEPS_AT_ONCE = 512


def write(run: Run, path: Path, choice: Choice, *, force: bool, progress: Callable[[float], None]) -> None:
    """Write event files, see `tdbg_lab.exchange.export`; ``tensorboard --logdir PATH`` shows them."""
    jobs = choice.tensors(run)
    folder = claim_folder(path, force=force)
    total, done = sum(len(keys) for _, keys in jobs), 0
    for mode, keys in jobs:
        (folder / str(mode)).mkdir(exist_ok=True)
        name = f"events.out.tfevents.{run.info.created_ns // 10**9}.{run.info.id[:12]}.tdbg"
        with claim_file(folder / str(mode) / name, force=force) as partial, partial.open("wb") as file:
            write_record(file, file_version())
            for key in keys:
                _tensor(run, file, key, mode)
                done += 1
                progress(done / total)
    progress(1.0)


def _tensor(run: Run, file: IO[bytes], key: TensorKey, mode: Mode) -> None:
    """All steps of one tensor."""
    name = key.name
    history = run.tensor(name).history(["count", "value", "time_ns"], mode=mode)
    steps, counts = history["step"].to_numpy(), history["count"].to_numpy()
    values, times = history["value"].to_numpy(), history["time_ns"].to_numpy()
    if not len(steps):
        return
    if is_number(key) or (counts == 1).all():
        for step, when, value in zip(steps.tolist(), times.tolist(), values.tolist(), strict=True):
            write_record(file, scalar_event(name, step, when, value))
        return
    for i in range(0, len(steps), _STEPS_AT_ONCE):
        part = steps[i : i + _STEPS_AT_ONCE]
        found = run.tensor(name).histograms(mode=mode, steps=(int(part[0]), int(part[-1])))
        when = dict(zip(part.tolist(), times[i : i + _STEPS_AT_ONCE].tolist(), strict=True))
        for row, step in enumerate(found.steps.tolist()):
            histogram = _histogram(found.block, row)
            if histogram is not None:
                write_record(file, histogram_event(name, step, when.get(step, time.time_ns()), histogram))


def _histogram(block: StatsBlock, row: int) -> Histogram | None:
    finite = int(block.finite_count[row])
    if not finite:
        return None
    limits, counts = buckets_of(block, row)
    if not len(limits):  # a number, or statistics of a reader that has no histogram
        return None
    mean, l2 = float(block.mean[row]), float(block.l2[row])
    known = {
        "min": float(block.min[row]),
        "max": float(block.max[row]),
        "sum": mean * finite,
        "sum_squares": l2 * l2,
    }
    return Histogram(np.r_[limits[0], limits[:-1]], limits, counts, known)
