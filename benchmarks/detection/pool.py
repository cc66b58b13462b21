"""Run programs over seeds in two processes; what was done before is not done again."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.detection.catalog import find, programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["Job", "kept", "outcomes"]

Job = tuple[str, int]
"""Name of a program, and a seed."""


def _do(
    job: Job,
    cache_folder: str,
    sets: tuple[str, ...],
    *,
    fresh: bool,
    recorded_anew: bool,
    only_recorded: bool,
) -> dict[str, Any]:
    """Record and judge, in a worker; or record without a word to any detector."""
    from benchmarks.detection.judging import judge, unanswered
    from benchmarks.detection.recording import place_of, record, score

    name, seed = job
    try:
        program = find(name)
        if not sets:
            place = place_of(program, seed, Path(cache_folder), bare=True)
            return {"program": name, "seed": seed, "score": score(program, seed, place)}
        place = place_of(program, seed, Path(cache_folder))
        if only_recorded:
            return {"program": name, "seed": seed, **record(program, seed, place, fresh=recorded_anew)}
        asked = bool(unanswered(place, sets, fresh=fresh))
        facts = record(program, seed, place, fresh=recorded_anew, to_be_asked=asked)
        return {"program": name, "seed": seed, **facts, "sets": judge(place, facts, sets, fresh=fresh)}
    except Exception:  # noqa: BLE001 - told with its traceback, the others go on
        return {"program": name, "seed": seed, "failed": traceback.format_exc()}


def kept(jobs: Sequence[Job], cache_folder: Path) -> Iterator[dict[str, Any]]:
    """What was recorded and answered by our default rules before; other sets where they answered."""
    from benchmarks.detection.judging import DEFAULT_SET, SETS
    from benchmarks.detection.recording import place_of

    known = {one.name: one for one in programs()}
    for name, seed in jobs:
        place = place_of(known[name], seed, cache_folder)
        answers = {one: place / f"{one}.json" for one in SETS if (place / f"{one}.json").exists()}
        if DEFAULT_SET in answers and (place / "facts.json").exists():
            facts = json.loads((place / "facts.json").read_text())
            sets = {one: json.loads(path.read_text()) for one, path in answers.items()}
            yield {"program": name, "seed": seed, **facts, "sets": sets}


def _end_with_parent() -> None:
    """Let a worker go when the process that started it is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


def outcomes(
    jobs: Sequence[Job],
    cache_folder: Path,
    sets: tuple[str, ...],
    *,
    workers: int = 2,
    fresh: bool = True,
    recorded_anew: bool = True,
    only_recorded: bool = False,
    until: float | None = None,
    progress: Callable[[str], object] = print,
) -> Iterator[dict[str, Any]]:
    """What came of each job, in the order they end; without `sets` only its score.

    With `only_recorded` no detector is asked: programs are published and recorded before any rule sees them.

    Ctrl-C ends at once, and what was done is kept; no job is begun after `until` (of the monotonic clock).
    """
    begun = time.monotonic()
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_end_with_parent)
    try:
        open_jobs = {
            pool.submit(
                _do,
                job,
                str(cache_folder),
                sets,
                fresh=fresh,
                recorded_anew=recorded_anew,
                only_recorded=only_recorded,
            )
            for job in jobs
        }
        count = 0
        while open_jobs:
            done, open_jobs = wait(open_jobs, timeout=5, return_when=FIRST_COMPLETED)
            if until is not None and time.monotonic() > until:
                open_jobs = {one for one in open_jobs if not one.cancel()}
            for one in done:
                count += 1
                outcome = one.result()
                took = time.monotonic() - begun
                mark = "FAILED" if "failed" in outcome else f"score {outcome['score']:.3f}"
                progress(f"[{count}/{len(jobs)} {took:.0f} s] {outcome['program']} {outcome['seed']}: {mark}")
                yield outcome
    except KeyboardInterrupt:
        for process in list(pool._processes.values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
