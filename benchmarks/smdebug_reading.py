"""Measures reading a store of SageMaker Debugger: tdbg-lab beside smdebug's own reader.

    python benchmarks/smdebug_reading.py --smdebug-python PATH [--steps 1000] [--tensors 100] [--keep DIR]

PATH is an interpreter that has smdebug 1.0.34 (pins in ``tests/data/smdebug/record.py``). It writes the
stores with smdebug's writer and reads them with ``create_trial`` and ``values()`` of every tensor; we
read them with ``open_run`` and ``values()`` of every tensor. Each reading has a process of its own and
is measured in its CPU time, without imports, taking turns. Writes ``results/smdebug_reading.json`` and
``.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import described, loads, machine, publish

RESULTS = Path(__file__).parent / "results"
SHAPES = {"small": (16,), "large": (32, 32)}
WRITE = """
import json, sys
import numpy as np
from smdebug.core.collection_manager import CollectionManager
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import FileWriter
out, steps, tensors, shape = json.loads(sys.argv[1])
random = np.random.default_rng(0)
for step in range(steps):
    writer = FileWriter(out, "worker_0", step=step)
    for i in range(tensors):
        value = random.standard_normal(shape, dtype=np.float32)
        writer.write_tensor(value, f"Net_layer{i}.weight", mode=ModeKeys.TRAIN, mode_step=step)
    writer.close()
manager = CollectionManager()
manager.set_num_workers(1)
manager.export(out, "worker_0_collections.json")
open(out + "/training_job_end.ts", "w").close()
"""
SMDEBUG = """
import json, sys, time
from smdebug.trials import create_trial
begin = time.process_time()
trial = create_trial(sys.argv[1])
names = trial.tensor_names()
opened = time.process_time()
values, total = 0, 0.0
for name in names:
    for value in trial.tensor(name).values().values():
        values += 1
        total += float(value.flat[0])
print(json.dumps([opened - begin, time.process_time() - opened, values, total]))
"""
OURS = """
import json, sys, time
from tdbg_lab.run import open_run
import pyarrow.compute, pandas
begin = time.process_time()
run = open_run(sys.argv[1])
names = run.tensor_names()
opened = time.process_time()
values, total = 0, 0.0
for name in names:
    for value in run.tensor(name).values().values():
        values += 1
        total += float(value.flat[0])
print(json.dumps([opened - begin, time.process_time() - opened, values, total]))
"""


def read(python: str, code: str, store: Path) -> list[float]:
    """CPU seconds to open and to read all values, the values read, and a sum to compare."""
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [python, "-c", code, str(store)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(root), "SMDEBUG_LOG_LEVEL": "error"},
    )
    return json.loads(done.stdout.splitlines()[-1])


def measure(peer: str, store: Path, repeats: int) -> dict[str, object]:
    """Both readers, taking turns."""
    ours, theirs = [], []
    for _ in range(repeats):
        theirs.append(read(peer, SMDEBUG, store))
        ours.append(read(sys.executable, OURS, store))
    counts = {found[2] for found in (*ours, *theirs)}
    sums = {round(found[3], 3) for found in (*ours, *theirs)}
    if len(counts) != 1 or len(sums) != 1:
        raise SystemExit(f"The readers do not agree: {counts} values, sums {sums}.")
    ratios = [sum(a[:2]) / sum(b[:2]) for a, b in zip(theirs, ours, strict=True)]
    return {
        "values": int(counts.pop()),
        "smdebug_cpu_s": [round(sum(found[:2]), 3) for found in theirs],
        "tdbg_cpu_s": [round(sum(found[:2]), 3) for found in ours],
        "smdebug_open_cpu_s": round(statistics.median(found[0] for found in theirs), 3),
        "tdbg_open_cpu_s": round(statistics.median(found[0] for found in ours), 3),
        "ratio": round(statistics.median(ratios), 1),
        "ratio_least": round(min(ratios), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smdebug-python", required=True)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--tensors", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="keep the stores here, and use those that are here")
    options = parser.parse_args()
    result: dict[str, object] = {"machine": machine("numpy", "pyarrow")}
    results: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name, shape in SHAPES.items():
            folder = options.keep or Path(temporary)
            store = (folder / f"{name}-{options.steps}x{options.tensors}").absolute()
            if not (store / "training_job_end.ts").exists():
                arguments = json.dumps([str(store), options.steps, options.tensors, shape])
                subprocess.run([options.smdebug_python, "-c", WRITE, arguments], check=True)
            results[name] = {"shape": list(shape), **measure(options.smdebug_python, store, options.repeats)}
    result |= {"steps": options.steps, "tensors": options.tensors, "stores": results}
    print(publish(result, RESULTS / "smdebug_reading", report))


def report(result: dict[str, object]) -> str:
    about = (
        f"{result['steps']} steps x {result['tensors']} float32 tensors, written by smdebug 1.0.34. CPU time "
        f"of opening the store and reading every value, median of the runs. {described(result['machine'])} "
        f"{loads(result)}"
    )
    lines = [
        "# Reading a store of SageMaker Debugger",
        "",
        about,
        "",
        "| tensor | smdebug `create_trial` + `values()` | `open_run` + `values()` | ratio (least) |",
        "|---|---|---|---|",
    ]
    for found in result["stores"].values():
        theirs, ours = (statistics.median(found[key]) for key in ("smdebug_cpu_s", "tdbg_cpu_s"))
        ratio = f"{found['ratio']} ({found['ratio_least']})"
        lines.append(f"| {found['shape']} | {theirs:.2f} s | {ours:.2f} s | {ratio} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
