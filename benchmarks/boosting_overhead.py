"""What capture costs boosted trees: CPU time of a whole training with it over the same without.

Bare and captured trainings take turns, so that a noisy neighbour hits both alike; the figure is the
median of the paired ratios of process CPU time. The sampler is off: it is a process of its own.

    python benchmarks/boosting_overhead.py            # writes results/boosting_overhead.json and .md
    python benchmarks/boosting_overhead.py --pairs 3 --rounds 100
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median

import lightgbm
import numpy as np
import xgboost

import tdbg_lab as tdbg

RESULTS = Path(__file__).parent / "results"
XGB = {"objective": "binary:logistic", "nthread": 1, "max_depth": 6, "eta": 0.1}
LGB = {"objective": "binary", "num_threads": 1, "num_leaves": 31, "verbosity": -1}
ARMS = {
    "metrics": {"collections": ["metrics", "losses"]},
    "all but SHAP, every 10": {"collections": {"full_shap": False, "average_shap": False}},
    "all, every 10": {},
    "all, every round": {"save_every": 1},
}


def data(rows: int, features: int):
    random = np.random.default_rng(0)
    table = random.normal(size=(rows, features))
    return table, (table[:, 0] * table[:, 1] + table[:, 2] + random.normal(size=rows) > 0).astype(int)


def train(library: str, table, labels, rounds: int, callbacks) -> float:
    """CPU seconds of one training."""
    if library == "xgboost":
        matrix = xgboost.DMatrix(table, labels)
        started = time.process_time()
        xgboost.train(XGB, matrix, rounds, evals=[(matrix, "train")], callbacks=callbacks, verbose_eval=False)
    else:
        matrix = lightgbm.Dataset(table, labels).construct()
        started = time.process_time()
        lightgbm.train(LGB, matrix, rounds, [matrix], ["training"], callbacks=callbacks)
    return time.process_time() - started


def measure(library: str, arm: dict, table, labels, options) -> dict[str, float]:
    make = tdbg.XGBoostCallback if library == "xgboost" else tdbg.LightGBMCallback
    ratios, bare_s = [], []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(options.pairs + 1):
            bare = train(library, table, labels, options.rounds, [])
            callback = make(Path(folder) / "run", train=(table, labels), profiler=False, **arm)
            captured = train(library, table, labels, options.rounds, [callback])
            if pair:  # the first pair loads and compiles
                ratios.append(captured / bare)
                bare_s.append(bare)
    return {
        "overhead": median(ratios) - 1,
        "lowest": min(ratios) - 1,
        "highest": max(ratios) - 1,
        "bare_ms_per_round": 1000 * median(bare_s) / options.rounds,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=30)
    options = parser.parse_args()
    from tdbg_lab.stats import cpu

    cpu.warm_up()
    table, labels = data(options.rows, options.features)
    found = {
        f"{library}, {name}": measure(library, arm, table, labels, options)
        for library in ("xgboost", "lightgbm")
        for name, arm in ARMS.items()
    }
    facts = {**vars(options), "xgboost": xgboost.__version__, "lightgbm": lightgbm.__version__}
    (RESULTS / "boosting_overhead.json").write_text(
        json.dumps({"facts": facts, "results": found}, indent=1) + "\n"
    )
    lines = [
        "# What capture costs boosted trees",
        "",
        f"{options.rows} rows, {options.features} features, {options.rounds} rounds, one thread; CPU time,",
        f"median of {options.pairs} pairs (lowest to highest). SHAP of 128 rows, predictions of 1024 rows.",
        "",
        "| library and what is saved | bare round ms | overhead | lowest to highest |",
        "| --- | --- | --- | --- |",
    ]
    for name, one in found.items():
        span = f"{one['lowest']:+.1%} to {one['highest']:+.1%}"
        lines.append(f"| {name} | {one['bare_ms_per_round']:.2f} | {one['overhead']:+.1%} | {span} |")
    (RESULTS / "boosting_overhead.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
