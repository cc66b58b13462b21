"""What a figure costs on the server: 500 layers x 1,000 steps, from an open run to Plotly JSON.

    python benchmarks/views.py            # prints, and writes benchmarks/results/views.{json,md}

Each number is the median of several calls on an open, refreshed run, as the server makes them; "first" is the
first call after opening it, with cold caches. Then the pictures of a dashboard of a long run, 30 layers x
24,000 steps, one after the other again and again: they share what is kept of the run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from machine import described, loads, machine, publish

from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.run import open_run
from tdbg_lab.stats.reference import summarize
from tdbg_lab.store import RankWriter, create_run
from tdbg_lab.views import call_view, figure_json

RESULTS = Path(__file__).parent / "results"
TARGET_MS = 200
LONG = (30, 24_000)
"""Layers and steps of the long run."""
CALLS = (
    ("overview", {"kind": "gradient"}),
    ("overview", {"kind": "gradient", "statistic": "zero_share"}),
    ("overview", {"kind": "gradient", "statistic": "mean"}),
    ("histogram", {"tensor": "gradient/layer0.weight"}),
    ("histogram", {"tensor": "gradient/layer0.weight", "scale": "linear"}),
    ("slices", {"tensor": "gradient/layer0.weight"}),
    ("distribution", {"tensor": "gradient/layer0.weight"}),
    ("statistics", {"regex": r"layer[0-3]?[0-9]\."}),
    ("scalars", {}),
)
DASHBOARD = (
    ("scalars", {}),
    ("histogram", {"tensor": "activation/layer0.weight"}),
    ("overview", {"kind": "gradient"}),
    ("statistics", {"regex": r"activation/layer[0-4]\."}),
)


def write(path: Path, layers: int, steps: int, kinds: tuple[Kind, ...] = (Kind.GRADIENT,)) -> None:
    """A run of `layers` tensors of each kind and a loss, histograms of about 80 occupied bins each."""
    rng = np.random.default_rng(0)
    sizes = np.geomspace(1e-6, 1, layers)
    blocks = [
        summarize([*(rng.normal(0, size, 4000) for _ in kinds for size in sizes), np.array([1.0])])
        for _ in range(4)
    ]
    keys = (
        *(TensorKey(f"{kind}/layer{i}.weight", kind, f"layer{i}") for kind in kinds for i in range(layers)),
        TensorKey("loss/CrossEntropyLoss", Kind.LOSS),
    )
    run = create_run(path)
    writer = RankWriter(run.path)
    for step in range(steps):
        block = blocks[step % len(blocks)]
        block = replace(block, l2=block.l2 * (1 + step / steps))
        writer.append(StatsRows(step, Mode.TRAIN, 0, time.time_ns(), keys, block))
    writer.close()
    run.set_status("finished")


def measure(path: Path, repeat: int) -> list[dict[str, object]]:
    """One row for each call."""
    rows = []
    for name, params in CALLS:
        run = open_run(path)
        times, sizes = [], []
        for _ in range(repeat + 1):
            start, cpu = time.perf_counter(), time.process_time()
            figure = call_view(run, name, params)
            drawn = time.perf_counter()
            text = figure_json(figure)
            end = time.perf_counter()
            times.append((end - start, drawn - start, end - drawn, time.process_time() - cpu))
            sizes.append(len(text))
        rest = times[1:]
        rows.append(
            {
                "view": name,
                "params": params,
                "first_ms": round(times[0][0] * 1e3, 1),
                "median_ms": round(statistics.median(t[0] for t in rest) * 1e3, 1),
                "draw_ms": round(statistics.median(t[1] for t in rest) * 1e3, 1),
                "json_ms": round(statistics.median(t[2] for t in rest) * 1e3, 1),
                "cpu_ms": round(statistics.median(t[3] for t in rest) * 1e3, 1),
                "kilobytes": round(sizes[-1] / 1e3),
                "typed_arrays": '"bdata"' in text,
            }
        )
    return rows


def measure_dashboard(path: Path, repeat: int) -> list[dict[str, object]]:
    """One row for each picture, drawn after all the others."""
    run = open_run(path)
    times: list[list[float]] = [[] for _ in DASHBOARD]
    for _ in range(repeat + 1):
        for (name, params), taken in zip(DASHBOARD, times, strict=True):
            start = time.perf_counter()
            figure_json(call_view(run, name, params))
            taken.append(round((time.perf_counter() - start) * 1e3, 1))
    return [
        {"view": name, "params": params, "first_ms": taken[0], "median_ms": statistics.median(taken[1:])}
        for (name, params), taken in zip(DASHBOARD, times, strict=True)
    ]


def table(rows: list[dict[str, object]], columns: dict[str, str]) -> list[str]:
    """Rows as Markdown; `columns` says in which field of a row the numbers below a heading are."""
    lines = [f"| view | parameters | {' | '.join(columns)} |", "|---" * (2 + len(columns)) + "|"]
    for row in rows:
        params = ", ".join(f"{key}={value}" for key, value in dict(row["params"]).items())
        numbers = " | ".join(str(row[name]) for name in columns.values())
        lines.append(f"| {row['view']} | {params} | {numbers} |")
    return lines


def report(result: dict[str, object]) -> str:
    """The tables as Markdown."""
    about = (
        f"{described(result['machine'])} {loads(result)} {result['layers']} layers x {result['steps']:,} "
        f"steps. Milliseconds, median of warm calls; target {TARGET_MS} ms for the overview of all layers."
    )
    long = (
        f"The pictures of a dashboard, one after the other: {LONG[0]} layers, each with gradients, "
        f"activations and weights, x {LONG[1]:,} steps."
    )
    warm = {"first": "first_ms", "median": "median_ms"}
    parts = {"of it drawing": "draw_ms", "of it JSON": "json_ms", "CPU": "cpu_ms", "kB": "kilobytes"}
    lines = ["# Views: time to a figure", "", about, "", *table(result["rows"], warm | parts)]
    return "\n".join([*lines, "", long, "", *table(result["dashboard"], warm), ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=500)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="write the run here, or use the one that is there")
    parser.add_argument("--long", type=Path, help="the same of the long run")
    parser.add_argument("--no-write", action="store_true")
    asked = parser.parse_args()
    result = {"machine": machine("plotly", "numpy"), "layers": asked.layers, "steps": asked.steps}
    with tempfile.TemporaryDirectory() as folder:
        path = asked.keep or Path(folder) / "run"
        if not (path / "run.json").exists():
            write(path, asked.layers, asked.steps)
        result["rows"] = measure(path, asked.repeat)
        long = asked.long or Path(folder) / "long"
        if not (long / "run.json").exists():
            write(long, *LONG, (Kind.GRADIENT, Kind.ACTIVATION, Kind.WEIGHT))
        result["dashboard"] = measure_dashboard(long, asked.repeat)
    if asked.no_write:
        print(json.dumps(result, indent=1))
    else:
        print(publish(result, RESULTS / "views", report))


if __name__ == "__main__":
    main()
