"""``python -m benchmarks.detection``: trains the programs, asks the detectors, writes what they found."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # run as `python benchmarks/detection`
    sys.path.insert(0, str(ROOT))

from benchmarks.detection.catalog import HELD_OUT, SETS_OF_PROGRAMS, programs  # noqa: E402
from benchmarks.detection.judging import SETS  # noqa: E402
from benchmarks.detection.pool import kept, outcomes  # noqa: E402
from benchmarks.detection.report import details, write  # noqa: E402

CACHE = Path.home() / ".cache" / "tdbg-lab" / "detection"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.detection", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--half", choices=SETS_OF_PROGRAMS, help="only this set; nothing is written then")
    parser.add_argument(
        "--only", default="", help="only programs whose name holds this; nothing is written then"
    )
    parser.add_argument("--sets", default=",".join(SETS), help="detectors, joined by commas")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=CACHE, help="where recordings are kept")
    parser.add_argument(
        "--part", default="0/1", help="of the programs, 0/3 the first, fourth, ...; nothing is written"
    )
    parser.add_argument("--stale", action="store_true", help="take recordings and answers of older code, too")
    parser.add_argument(
        "--stale-recordings", action="store_true", help="take recordings of older capture, answers anew"
    )
    parser.add_argument("--kept", action="store_true", help="run nothing: write what was run before")
    parser.add_argument("--quiet", action="store_true")
    return parser.parse_args()


def main() -> int:
    """Run, and write ``results/detection.*`` when everything was run."""
    given = _arguments()
    sets = tuple(filter(None, given.sets.split(",")))
    chosen = programs(given.half or "", given.only)
    part, parts = (int(one) for one in given.part.split("/"))
    chosen = chosen[part::parts]
    jobs = [(one.name, seed) for seed in range(given.seeds) for one in chosen]
    if given.kept:
        print(write(list(kept(jobs, given.cache))))
        return 0
    progress = (lambda line: None) if given.quiet else (lambda line: print(line, flush=True))
    try:
        found = list(
            outcomes(
                jobs,
                given.cache,
                sets,
                workers=given.workers,
                fresh=not given.stale,
                recorded_anew=not (given.stale or given.stale_recordings),
                progress=progress,
            )
        )
    except KeyboardInterrupt:
        print("Stopped; what was recorded is kept, and the next run goes on from there.")
        return 130
    failed = [one for one in found if "failed" in one]
    for one in failed:
        print(one["program"], one["seed"], one["failed"], file=sys.stderr)
    found = [one for one in found if "failed" not in one]
    if given.half or given.only or parts > 1 or sets != SETS:
        print(details(found, sets, blind=given.half == HELD_OUT))
    elif not failed:
        print(write(found))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
