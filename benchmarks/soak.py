"""Whether memory grows while a run is watched live: the browser's heap and the server's resident memory.

A training process writes 24,000 steps as fast as it can, and then saves every step at 20 steps a second;
a real JupyterLab follows; a Chromium shows the dashboard. The steps ahead fill what the server keeps of a
run on purpose, 64 MB of decoded columns: else a young server grows for a quarter of an hour, however sound
it is.

From then on, every half minute: the JavaScript heap after a forced collection, the number of DOM nodes and
listeners, and the resident memory of the server and of the processes it started. A straight line is fitted to
what comes after the first third of the time, when everything has been loaded, and another to the last third;
the slopes are what is told, with the standard error of the fit. Memory comes and goes in waves (a segment
fills and is sealed), so neighbouring samples err together: the lines are fitted to the means of a few
stretches of time, else the error would be told far too small. What grows by more than two standard errors is
called growing, unless the last third shows, by as much, that it grows at less than half that pace there.

    python benchmarks/soak.py [--minutes 30] [--rate 20] [--ahead 24000] [--sample-every 30]

Needs what ``browser.py`` needs. Writes ``benchmarks/results/soak.json`` and ``soak.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
from chromium import Lab, Page, Training
from machine import described, machine, publish

RESULTS = Path(__file__).parent / "results"
PARTS = {"after_warm_up": 1 / 3, "last_third": 2 / 3}
"""Share of the time after which each line begins."""
STRETCHES = 6
"""Stretches of time whose means each line is fitted to."""
UNITS = {
    "heap_mb": "JavaScript heap, MB",
    "nodes": "DOM nodes",
    "listeners": "DOM listeners",
    "server_mb": "server, resident MB",
    "children_mb": "its child processes, resident MB",
}


def soak(root: Path, *, minutes: float, rate: float, ahead: int, every_s: float) -> list[dict]:
    """One sample every `every_s` seconds for `minutes`, after the steps `ahead`."""
    steps = ahead + int((minutes + 5) * 60 * rate)
    with (
        closing(Lab(root)) as lab,
        closing(Page()) as page,
        closing(Training(root / "soak", steps=steps, rate=rate, ahead=ahead)) as training,
    ):
        page.do("lab", url=lab.url)
        training.start()
        page.do("open", command="tdbg:open-dashboard", args={"run": lab.run_id("soak")})
        page.do("watch")
        await_step(page, training, ahead)
        started_s, samples = time.monotonic(), []
        while (passed_s := time.monotonic() - started_s) < minutes * 60:
            time.sleep(every_s - passed_s % every_s)
            if not training.alive:
                raise SystemExit("The training has ended before the soak.")
            samples.append(sample(lab, page, (time.monotonic() - started_s) / 60))
            print(json.dumps(samples[-1]), flush=True)
    if not any(each["drawings"] for each in samples):
        raise SystemExit("Nothing was drawn over steps: this was no soak.")
    return samples


def await_step(page: Page, training: Training, wanted: int) -> None:
    """Wait until a picture reaches a step."""
    while last_step(page.do("drawn")) < wanted:
        if not training.alive:
            raise SystemExit("The training has ended before the soak.")
        time.sleep(1)


def last_step(drawings: list) -> int:
    return max((step for _, _, step in drawings if step is not None), default=-1)


def sample(lab: Lab, page: Page, minute: float) -> dict:
    heap, memory, drawings = page.do("heap"), lab.memory(), page.do("drawn")
    return {
        "minute": minute,
        "heap_mb": heap["bytes"] / 1e6,
        "nodes": heap["nodes"],
        "listeners": heap["jsEventListeners"],
        "server_mb": memory["server"],
        "children_mb": memory["children"],
        "last_step": last_step(drawings),
        "drawings": len(drawings),
        "load": os.getloadavg()[0],
    }


def growth(samples: list[dict], name: str, begin: float) -> dict:
    """Growth per hour after the share `begin` of the time, with its standard error."""
    kept = [each for each in samples if each["minute"] > samples[-1]["minute"] * begin]
    hours = np.array([each["minute"] / 60 for each in kept])
    values = np.array([each[name] for each in kept])
    stretches = np.array_split(np.arange(len(kept)), min(STRETCHES, len(kept)))
    x = np.array([hours[each].mean() for each in stretches])
    y = np.array([values[each].mean() for each in stretches])
    slope, start = np.polyfit(x, y, 1)
    rest = y - (slope * x + start)
    error = np.sqrt((rest**2).sum() / max(len(x) - 2, 1) / ((x - x.mean()) ** 2).sum())
    return {
        "first": float(values[0]),
        "last": float(values[-1]),
        "per_hour": float(slope),
        "standard_error": float(error),
    }


def verdict(found: list[dict]) -> str:
    """What the slopes after the warm-up and in the last third say together; in doubt, that it grows."""
    whole, end = found
    if whole["per_hour"] <= 2 * whole["standard_error"]:
        return "does not grow"
    most = end["per_hour"] + 2 * end["standard_error"]
    return "levels off" if most < whole["per_hour"] / 2 else "grows"


def found_of(result: dict, name: str) -> list[dict]:
    return [result["growth"][name][part] for part in PARTS]


def report(result: dict) -> str:
    rows = [
        "| what | after a third | at the end | growth an hour | in the last third | |",
        "|---|---|---|---|---|---|",
    ]
    for name, words in UNITS.items():
        slopes = [
            f"{found['per_hour']:+.1f} ± {found['standard_error']:.1f}" for found in found_of(result, name)
        ]
        first = found_of(result, name)[0]
        ends = f"{first['first']:.0f} | {first['last']:.0f}"
        rows.append(f"| {words} | {ends} | {' | '.join(slopes)} | {verdict(found_of(result, name))} |")
    samples = result["samples"]
    drawings = sum(each["drawings"] for each in samples)
    load = float(np.median([each["load"] for each in samples]))
    return (
        "# Memory while a run is watched live\n\n"
        f"{described(result['machine'])} Over {samples[-1]['minute']:.0f} minutes, load average "
        f"{result['machine']['load_average']:.1f} at the start and {load:.1f} in the median: "
        f"{samples[-1]['last_step']:,} steps, the dashboard open, {drawings:,} drawings over steps. "
        f"{result['ahead']:,} steps were written before, to fill the 64 MB of decoded columns that the "
        "server keeps of a run.\n\n" + "\n".join(rows) + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=float, default=20)
    parser.add_argument("--ahead", type=int, default=24_000)
    parser.add_argument("--sample-every", type=float, default=30)
    options = parser.parse_args()
    facts = machine("jupyterlab")
    with tempfile.TemporaryDirectory() as folder:
        samples = soak(
            Path(folder),
            minutes=options.minutes,
            rate=options.rate,
            ahead=options.ahead,
            every_s=options.sample_every,
        )
    growths = {name: {part: growth(samples, name, begin) for part, begin in PARTS.items()} for name in UNITS}
    result = {"machine": facts, "ahead": options.ahead, "growth": growths, "samples": samples}
    print(publish(result, RESULTS / "soak", report))


if __name__ == "__main__":
    main()
