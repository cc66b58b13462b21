"""``python -m benchmarks.detection``: trains the programs, asks the detectors, writes what they found."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # run as `python benchmarks/detection`
    sys.path.insert(0, str(ROOT))

from benchmarks.detection.catalog import HELD_OUT, SETS_OF_PROGRAMS, programs, tasks  # noqa: E402
from benchmarks.detection.crossed import crossings  # noqa: E402
from benchmarks.detection.judging import SETS  # noqa: E402
from benchmarks.detection.keeping import trim  # noqa: E402
from benchmarks.detection.pool import kept, outcomes  # noqa: E402
from benchmarks.detection.report import details, write  # noqa: E402

CACHE = Path.home() / ".cache" / "tdbg-lab" / "detection"
MOST_MB = 4000


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.detection", description=__doc__)
    parser.add_argument("--seeds", type=int, help="how many; by default what each set of programs declares")
    parser.add_argument("--half", default=",".join(SETS_OF_PROGRAMS), help="sets of programs, by commas")
    parser.add_argument(
        "--only", default="", help="only programs whose name holds this; nothing is written then"
    )
    parser.add_argument(
        "--sets", default=",".join(SETS), help="detectors, joined by commas; nothing is written for fewer"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--keep", type=Path, default=CACHE, metavar="FOLDER",
        help="where recordings and answers are kept: another call goes on from there",
    )  # fmt: skip
    parser.add_argument(
        "--keep-mb", type=float, default=MOST_MB,
        help="recordings beyond this size are dropped, the oldest first; scores and answers stay",
    )  # fmt: skip
    parser.add_argument(
        "--minutes", type=float, help="begin no program later than this; the next call goes on"
    )
    parser.add_argument("--details", action="store_true", help="tell misses and alarms, write nothing")
    parser.add_argument("--stale", action="store_true", help="take recordings and answers of older code, too")
    parser.add_argument(
        "--stale-recordings", action="store_true", help="take recordings of older capture, answers anew"
    )
    parser.add_argument(
        "--record", action="store_true", help="train and record, and ask no detector: a later call does"
    )
    parser.add_argument("--kept", action="store_true", help="run nothing: write what was run before")
    parser.add_argument(
        "--crossed", type=int, default=0, metavar="N",
        help="instead: each task with N faults of others of its family, one seed; nothing is written",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true")
    given = parser.parse_args()
    if given.kept and given.crossed:
        parser.error("--kept writes a report, and there is none of --crossed: leave one of the two out")
    given.half = tuple(filter(None, given.half.split(",")))
    given.sets = tuple(filter(None, given.sets.split(",")))
    if not set(given.half) <= set(SETS_OF_PROGRAMS):
        parser.error(f"--half takes some of {', '.join(SETS_OF_PROGRAMS)}, not {', '.join(given.half)}")
    return given


def _jobs(given: argparse.Namespace) -> list[tuple[str, int]]:
    """Programs and seeds, set by set, seed by seed."""
    if given.crossed:
        chosen = [one for one in tasks() if one.half in given.half and one.half != HELD_OUT]
        return [(one.name, 0) for one in crossings(chosen, given.crossed) if given.only in one.name]
    return [
        (one.name, seed)
        for name in given.half
        for seed in range(SETS_OF_PROGRAMS[name].seeds if given.seeds is None else given.seeds)
        for one in programs(name, given.only)
    ]


def _run(given: argparse.Namespace, jobs: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """What came of the jobs that could be begun in time."""
    progress = (lambda line: None) if given.quiet else (lambda line: print(line, flush=True))
    found = outcomes(
        jobs,
        given.keep,
        given.sets,
        workers=given.workers,
        fresh=not given.stale,
        recorded_anew=not (given.stale or given.stale_recordings),
        only_recorded=given.record,
        until=None if given.minutes is None else time.monotonic() + 60 * given.minutes,
        progress=progress,
    )
    done = []
    for one in found:
        done.append(one)
        trim(given.keep, given.keep_mb)
    return done


def main() -> int:
    """Run, and write ``results/detection.*`` when everything that was asked for has been run."""
    given = _arguments()
    jobs = _jobs(given)
    if given.kept:
        print(write(list(kept(jobs, given.keep))))
        return 0
    try:
        found = _run(given, jobs)
    except KeyboardInterrupt:
        print("Stopped; what was recorded is kept, and the next run goes on from there.")
        return 130
    failed = [one for one in found if "failed" in one]
    for one in failed:
        print(one["program"], one["seed"], one["failed"], file=sys.stderr)
    good = [one for one in found if "failed" not in one]
    if given.record:
        print(f"{len(good)} of {len(jobs)} runs are recorded.\n{details(good, (), blind=False)}")
    elif given.details or given.only or given.crossed or given.sets != SETS:
        blind = HELD_OUT in given.half and not given.only and not given.crossed
        print(details(good, given.sets, blind=blind))
    elif len(found) < len(jobs):
        print(f"{len(found)} of {len(jobs)} runs are done; the same call again goes on from there.")
    elif not failed:
        print(write(good))
    return 1 if len(good) < len(jobs) else 0


if __name__ == "__main__":
    raise SystemExit(main())
