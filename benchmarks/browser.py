"""How long from a hook's write until the browser has drawn it, at 20 steps a second.

A training process (torch, ``attach``, every step saved) writes; a real JupyterLab follows; a Chromium shows
the run. Latency of a step in a picture = the moment of the first ``plotly_afterplot`` with which the picture
reaches the step, minus the ``time_ns`` that the training process wrote with it. All processes run on one
machine and read one clock. Twice: with one view open, and with the dashboard of default pictures.

    python benchmarks/browser.py [--seconds 30] [--rate 20]

Needs the front end built, and Chromium and Playwright as the browser tests have them (``scripts/ui-test
--list`` sets all up). Writes ``benchmarks/results/browser.json`` and ``browser.md``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
from chromium import Lab, Page, Training
from machine import described, loads, machine, publish

from tdbg_lab.run import open_run

RESULTS = Path(__file__).parent / "results"
TARGET_P95_MS = 400.0
WARM_UP_S = 5.0
SCENES = {
    "view": ("tdbg:open-view", {"view": "histogram", "params": {"tensor": "activation/1"}}),
    "dashboard": ("tdbg:open-dashboard", {}),
}
WORDS = {"view": "one view", "dashboard": "dashboard"}


def scene(lab: Lab, root: Path, name: str, *, seconds: float, rate: float) -> dict:
    """One training with one thing open; what was drawn when, against what was written when."""
    steps = int((seconds + 2 * WARM_UP_S) * rate)
    with (
        closing(Training(root / name, steps=steps, rate=rate)) as training,
        closing(Page()) as page,
    ):
        page.do("lab", url=lab.url)
        training.start()
        command, args = SCENES[name]
        page.do("open", command=command, args={"run": lab.run_id(name), **args})
        page.do("watch")
        time.sleep(WARM_UP_S)  # pictures open, the server loads what it needs
        page.do("drawn")
        started_s, used = time.time(), [each.cpu_s() for each in (training, lab, page)]
        time.sleep(seconds)
        drawings = page.do("drawn")
        spent = [each.cpu_s() - before for each, before in zip((training, lab, page), used, strict=True)]
    if not drawings:
        raise SystemExit(f"Nothing was drawn over steps in {seconds:.0f} s.")
    cores = dict(zip(("training", "server", "browser"), np.array(spent) / seconds, strict=True))
    return {**summarize(root / name, drawings, started_s), "cores": cores}


def summarize(path: Path, drawings: list, started_s: float) -> dict:
    steps, written_ns = open_run(path).step_times()
    pictures = {title: latencies(title, drawings, steps, written_ns, started_s) for title, _, _ in drawings}
    pictures = {title: found for title, found in pictures.items() if len(found)}
    return {
        "steps_per_second": float((len(steps) - 1) / ((written_ns[-1] - written_ns[0]) / 1e9)),
        "all": percentiles(np.concatenate(list(pictures.values()))),
        "pictures": {title: percentiles(found) for title, found in pictures.items()},
        "drawings_per_second": {
            title: sum(each[0] == title for each in drawings) / (drawings[-1][1] / 1e3 - started_s)
            for title in pictures
        },
    }


def latencies(title: str, drawings: list, steps, written_ns, started_s: float):
    """Of each step written since `started_s`: ms until the picture reached it."""
    mine = [(at_ms, step) for name, at_ms, step in drawings if name == title and step is not None]
    reached = np.maximum.accumulate([step for _, step in mine]) if mine else np.array([])
    first = np.searchsorted(reached, steps)
    known = (first < len(reached)) & (written_ns > started_s * 1e9)
    at_ms = np.array([at for at, _ in mine])
    return at_ms[first[known]] - written_ns[known] / 1e6 if known.any() else np.array([])


def percentiles(found) -> dict:
    names = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}
    return {
        "steps": len(found),
        **{name: float(np.percentile(found, share)) for name, share in names.items()},
        "max_ms": float(found.max()),
    }


def report(result: dict) -> str:
    rows = [
        "| open | picture | steps/s | drawings/s | p50 ms | p95 ms | p99 ms | max ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, words in WORDS.items():
        case = result[name]
        for title, found in {"all": case["all"], **case["pictures"]}.items():
            if title == "all" and len(case["pictures"]) == 1:
                continue
            drawings = case["drawings_per_second"].get(title)
            rows.append(
                f"| {words} | {title} | {case['steps_per_second']:.1f} | "
                f"{'-' if drawings is None else f'{drawings:.1f}'} | {found['p50_ms']:.0f} | "
                f"{found['p95_ms']:.0f} | {found['p99_ms']:.0f} | {found['max_ms']:.0f} |"
            )
    cores = [
        f"{words}: training {case['training']:.2f}, server {case['server']:.2f}, "
        f"browser {case['browser']:.2f}"
        for name, words in WORDS.items()
        for case in [result[name]["cores"]]
    ]
    return (
        "# From a hook's write to the picture in the browser\n\n"
        f"{described(result['machine'])} {loads(result)} Training, JupyterLab and Chromium (drawing "
        "without a GPU) share the cores. "
        f"Target: p95 <= {TARGET_P95_MS:.0f} ms.\n\n"
        + "\n".join(rows)
        + f"\n\nCores used. {'; '.join(cores)}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rate", type=float, default=20)
    options = parser.parse_args()
    result = {"machine": machine("jupyterlab")}
    with tempfile.TemporaryDirectory() as folder, closing(Lab(Path(folder))) as lab:
        for name in SCENES:
            result[name] = scene(lab, Path(folder), name, seconds=options.seconds, rate=options.rate)
    print(publish(result, RESULTS / "browser", report))


if __name__ == "__main__":
    main()
