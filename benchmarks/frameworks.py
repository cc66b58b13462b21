"""What capture costs where something else trains: compiled, distributed, Trainer, Lightning, Keras, XGBoost.

Each case runs in processes of its own. A training for each arm (`trainings.py`) runs in blocks that
take turns: bare, with tdbg-lab saving every step and every 10th, and with each peer that can. The
first round warms up and is left out. The figure is the median of the paired differences over the
median bare step, in process CPU time; wall time beside. The sampler is off: it is a process of its
own. About five minutes on a quiet machine.

    python benchmarks/frameworks.py                                 # all cases, writes results/
    python benchmarks/frameworks.py --smdebug-python PATH           # adds smdebug, where it runs
    python benchmarks/frameworks.py --quick --cases hf-trainer,keras-jax --out /tmp/frameworks
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import described, loads, machine, publish, table
from trainings import OURS, TRAININGS

RESULTS = Path(__file__).parent / "results"
PEERS = {
    "compiled-gpt": ("tensorboard",),
    "ddp-2": ("wandb",),
    "hf-trainer": ("wandb",),
    "lightning": ("tensorboard",),
    "keras-torch": ("tensorboard-10",),
    "keras-tensorflow": ("tensorboard-10",),
    "keras-jax": ("tensorboard-10",),
    "xgboost": ("wandb",),
}
SMDEBUG_RUNS = ("ddp-2",)
WHAT = {
    "tensorboard": "histograms of weights and gradients, every step",
    "wandb": "`wandb.watch(log='all', log_freq=1)`, offline; XGBoost: its callback, which logs metrics only",
    "tensorboard-10": "Keras's callback, histograms of the weights every 10th step",
    "smdebug": "weights, gradients and losses, four reductions and two norms, every step",
}


# -- turns --------------------------------------------------------------------------------------------


def measure(case, arms, rounds, steps, folder):
    """Seconds a step by arm: rows of round, process CPU and wall; or why an arm did not run.

    Peers take part in every other round: what they cost shows in fewer of them.
    """
    trainings, times, failed = {}, {arm: [] for arm in arms}, {}
    for turn in range(rounds + 1):
        for arm in arms if turn % 2 else arms[::-1]:
            if turn and turn % 2 == 0 and arm != "bare" and arm not in OURS:
                continue
            try:
                if arm not in trainings and arm not in failed:
                    (folder / arm).mkdir(exist_ok=True)
                    trainings[arm] = TRAININGS[case](arm, folder / arm)
                spent = trainings[arm].block(steps) if arm in trainings else None
            except Exception as error:  # noqa: BLE001 - said in the table
                failed[arm] = f"{type(error).__name__}: {error}"[:300]
                trainings.pop(arm, None)
                continue
            if (turn or not rounds) and spent is not None:
                times[arm].append([turn, *spent.tolist()])
    for arm, training in trainings.items():
        try:
            training.close()
        except Exception as error:  # noqa: BLE001 - said in the table
            failed[arm] = f"{type(error).__name__}: {error}"[:300]
    return {"times": {arm: found for arm, found in times.items() if arm not in failed}, "failed": failed}


def processes(case, arms, python, options, folder):
    """Start what measures a case: two workers where it is distributed."""
    environment = {**os.environ, "KERAS_BACKEND": case.removeprefix("keras-") if "keras" in case else "torch"}
    environment |= {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "TOKENIZERS_PARALLELISM": "false"}
    command = [python, __file__, "--one", case, "--arms", ",".join(arms), "--folder", str(folder)]
    command += ["--rounds", str(options.rounds), "--steps", str(options.steps)]
    workers = 2 if case == "ddp-2" else 1
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for rank in range(workers):
        if workers > 1:
            environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(workers)}
            environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        yield subprocess.Popen(
            command, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


def in_processes(case, arms, python, options):
    folder = Path(tempfile.mkdtemp(prefix="frameworks-"))
    running = list(processes(case, arms, python, options, folder))
    try:
        said = [one.communicate(timeout=options.timeout) for one in running]
    except subprocess.TimeoutExpired:
        return {"times": {}, "failed": dict.fromkeys(arms, f"took longer than {options.timeout} s")}
    finally:
        for one in running:
            one.kill()
        shutil.rmtree(folder, ignore_errors=True)
    for line in reversed(said[0][0].splitlines()):
        if line.startswith('{"times"'):
            return json.loads(line)
    return {"times": {}, "failed": dict.fromkeys(arms, " ".join(said[0][1].split())[-300:])}


# -- reporting ----------------------------------------------------------------------------------------


def rows_of(case, found):
    if "bare" not in found["times"]:
        return
    bare = {turn: np.array(spent) * 1000 for turn, *spent in found["times"]["bare"]}
    step = np.median(list(bare.values()), axis=0)
    noise = np.median(np.abs(np.array(list(bare.values())) - step), axis=0)
    for arm, times in found["times"].items():
        if arm == "bare":
            continue
        extra = np.median([np.array(spent) * 1000 - bare[turn] for turn, *spent in times], axis=0)
        yield {
            "case": case,
            "arm": arm,
            "bare_cpu_ms": float(step[0]),
            "extra_cpu_ms": float(extra[0]),
            "overhead_cpu": float(extra[0] / step[0]),
            "noise_cpu": float(noise[0] / step[0]),
            "bare_wall_ms": float(step[1]),
            "extra_wall_ms": float(extra[1]),
            "overhead_wall": float(extra[1] / step[1]),
        }


def ratios(rows):
    """How much less CPU time tdbg-lab takes than each peer that saves as often."""
    extra = {(row["case"], row["arm"]): row["extra_cpu_ms"] for row in rows}
    for (case, arm), theirs in extra.items():
        ours = extra.get((case, "tdbg-10" if arm.endswith("-10") else "tdbg-1"))
        if arm not in OURS and ours is not None:
            yield {"case": case, "peer": arm, "times_less_cpu": theirs / ours if ours > 0 else None}


def as_markdown(result):
    rows = [
        [
            *(row["case"], row["arm"], f"{row['bare_cpu_ms']:.2f}", f"{row['extra_cpu_ms']:.2f}"),
            *(f"{row['overhead_cpu']:+.1%}", f"±{row['noise_cpu']:.0%}", f"{row['overhead_wall']:+.1%}"),
        ]
        for row in result["rows"]
    ]
    peers = [
        [
            one["case"],
            one["peer"],
            "noise" if one["times_less_cpu"] is None else f"{one['times_less_cpu']:.1f}",
        ]
        for one in result["ratios"]
    ]
    head = ["case", "arm", "bare step ms (CPU)", "extra ms", "overhead (CPU)", "noise", "overhead (wall)"]
    return "\n".join(
        [
            "# What capture costs where something else trains\n",
            described(result["machine"]),
            loads(result),
            f"Medians of {result['rounds'] or 1} paired blocks of {result['steps']} steps",
            "(of peers every other one),",
            f"in process CPU time, measured in {result['seconds'] / 60:.0f} minutes;",
            "two processes each on one core for `ddp-2`, of which the first is shown.",
            "`tdbg-1` and `tdbg-10` save every step and every 10th with all that is on by default:",
            "weights, gradients, outputs of the layers, their histograms. Peers:\n",
            *(f"- `{name}`: {what}." for name, what in WHAT.items()),
            "",
            *table(head, rows),
            "\nTimes less CPU time than a peer that saves as often:\n",
            *table(["case", "peer", "times less"], peers),
            *([""] if result["failed"] else []),
            *(f"- {case}, {arm}: did not run ({why})" for case, arm, why in result["failed"]),
            "",
        ]
    )


def report(result, case, found):
    """Add what was found of a case, and show it."""
    result["failed"] += [(case, arm, why) for arm, why in found["failed"].items()]
    for row in rows_of(case, found):
        result["rows"].append(row)
        print(
            f"{case:16} {row['arm']:14} bare {row['bare_cpu_ms']:8.2f} ms"
            f"  extra {row['extra_cpu_ms']:8.2f} ms  {row['overhead_cpu']:+8.1%}"
            f"  (noise {row['noise_cpu']:.0%}; wall {row['overhead_wall']:+.1%})",
            flush=True,
        )
    for arm, why in found["failed"].items():
        print(f"{case:16} {arm:14} did not run: {why}", flush=True)


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join(TRAININGS))
    parser.add_argument("--rounds", type=int, default=5, help="paired blocks of each arm")
    parser.add_argument("--steps", type=int, default=20, help="of a block, besides its warm-up; tens")
    parser.add_argument("--quick", action="store_true", help="one cold block of 10 steps: does it work")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one case")
    parser.add_argument("--smdebug-python", default="", help="interpreter of a venv with smdebug")
    parser.add_argument("--out", type=Path, default=RESULTS / "frameworks")
    parser.add_argument("--one", default="", help="measure one case here and print a JSON line")
    parser.add_argument("--arms", default="", help="of that case")
    parser.add_argument("--folder", type=Path, help="where that case writes")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.steps = 0, 10
    return options


def main():
    options = options_of()
    if options.one:
        found = measure(options.one, options.arms.split(","), options.rounds, options.steps, options.folder)
        print("\n" + json.dumps(found), flush=True)
        return
    from tdbg_lab.stats import cpu

    cpu.engine().compile()  # what every process loads; else each of them compiles
    start = time.perf_counter()
    result = {"machine": machine("torch", "keras", "tensorflow-cpu", "jax", "xgboost"), "rows": []}
    result |= {"rounds": options.rounds, "steps": options.steps, "failed": []}
    for case in options.cases.split(","):
        began = time.perf_counter()
        report(result, case, in_processes(case, ("bare", *OURS, *PEERS[case]), sys.executable, options))
        if options.smdebug_python and case in SMDEBUG_RUNS:
            report(result, case, in_processes(case, ("bare", "smdebug"), options.smdebug_python, options))
        print(f"{case:16} took {time.perf_counter() - began:.0f} s", flush=True)
    result["ratios"] = list(ratios(result["rows"]))
    result["seconds"] = time.perf_counter() - start
    publish(result, options.out, as_markdown)


if __name__ == "__main__":
    main()
