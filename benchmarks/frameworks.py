"""What capture costs where something else trains: compiled, distributed, Trainer, Lightning, Keras, XGBoost.

Each case runs in processes of its own. A training for each arm (`trainings`) runs in blocks that
take turns: bare, with tdbg-lab saving every step and every 10th, and with each peer that can. The
first round warms up and is left out. The figure is the median of the paired differences over the
median bare step, in CPU time of the process; CPU time of the training thread and wall time beside.
The sampler is off: it is a process of its own. Results are written after every case, and a case
that reaches its limit keeps the rounds it has. About seven minutes on a quiet machine.

    python benchmarks/frameworks.py                                 # all cases, writes results/
    python benchmarks/frameworks.py --smdebug-python PATH           # adds smdebug, where it runs
    python benchmarks/frameworks.py --cases keras-jax --keep        # one case anew, the others as they are
    python benchmarks/frameworks.py --quick --out /tmp/frameworks   # does it work
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import described, keep_memory, loads, machine, publish, table
from trainings import CANNOT, CLOCKS, OURS, PEERS, SMDEBUG_RUNS, TRAININGS, WHAT

RESULTS = Path(__file__).parent / "results"


# -- turns --------------------------------------------------------------------------------------------


def measure(case, arms, rounds, steps, folder):
    """Seconds a step by arm: rows of round and `CLOCKS`; or why an arm did not run. Prints it as it grows.

    Peers take part in every other round: what they cost shows in fewer of them.
    """
    trainings, times, failed = {}, {arm: [] for arm in arms}, {}
    for turn in range(rounds + 1):
        for arm in arms if turn % 2 else arms[::-1]:
            if arm in failed or (turn and turn % 2 == 0 and arm != "bare" and arm not in OURS):
                continue
            try:
                if arm not in trainings:
                    (folder / arm).mkdir(exist_ok=True)
                    trainings[arm] = TRAININGS[case](arm, folder / arm)
                spent = trainings[arm].block(steps)
            except Exception as error:  # noqa: BLE001 - said in the table
                failed[arm] = said(error)
                trainings.pop(arm, None)
                continue
            if turn or not rounds:
                times[arm].append([turn, *spent.tolist()])
        tell(times, failed)
    for arm, training in trainings.items():
        try:
            training.close()
        except Exception as error:  # noqa: BLE001 - said in the table
            failed[arm] = said(error)
    tell(times, failed)


def said(error):
    return f"{type(error).__name__}: {error}"[:300]


def tell(times, failed):
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in usage)
    kept = {arm: found for arm, found in times.items() if arm not in failed}
    print("\n" + json.dumps({"times": kept, "failed": failed, "cpu_s": seconds}), flush=True)


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
        with (folder / f"said-{rank}").open("w") as out, (folder / f"errors-{rank}").open("w") as errors:
            yield subprocess.Popen(command, env=dict(environment), stdout=out, stderr=errors)


def in_processes(case, arms, python, options):
    folder = Path(tempfile.mkdtemp(prefix="frameworks-"))
    began = time.perf_counter()
    running = list(processes(case, arms, python, options, folder))
    late = ""
    try:
        for one in running:
            one.wait(max(0.0, began + options.timeout - time.perf_counter()))
    except subprocess.TimeoutExpired:
        late = f"cut after {options.timeout} s"
    finally:
        for one in running:
            one.kill()
            one.wait()
        lines = (folder / "said-0").read_text().splitlines()
        errors = (folder / "errors-0").read_text()
        shutil.rmtree(folder, ignore_errors=True)
    found = {"times": {}, "failed": {}, "cpu_s": 0.0}
    found = next((json.loads(one) for one in reversed(lines) if one.startswith('{"times"')), found)
    found["cpu_s"] *= len(running)
    found["cut"] = late
    for arm in arms:
        if not found["times"].get(arm):
            found["failed"].setdefault(arm, late or " ".join(errors.split())[-300:])
    return found


# -- reporting ----------------------------------------------------------------------------------------


def rows_of(case, found):
    if not found["times"].get("bare"):
        return
    bare = {turn: np.array(spent) * 1000 for turn, *spent in found["times"]["bare"]}
    step = np.median(list(bare.values()), axis=0)
    noise = np.median(np.abs(np.array(list(bare.values())) - step), axis=0) / step
    for arm, times in found["times"].items():
        pairs = [np.array(spent) * 1000 - bare[turn] for turn, *spent in times if turn in bare]
        if arm == "bare" or not pairs:
            continue
        extra = np.median(pairs, axis=0)
        row = {"case": case, "arm": arm, "blocks": len(pairs)}
        for index, clock in enumerate(CLOCKS):
            row |= {f"bare_{clock}_ms": float(step[index]), f"extra_{clock}_ms": float(extra[index])}
            row |= {
                f"overhead_{clock}": float(extra[index] / step[index]),
                f"noise_{clock}": float(noise[index]),
            }
        yield row


def ratios(rows):
    """How much less CPU time tdbg-lab takes than each peer that saves as often."""
    extra = {(row["case"], row["arm"]): row["extra_process_ms"] for row in rows}
    for (case, arm), theirs in extra.items():
        ours = extra.get((case, "tdbg-10" if arm.endswith("-10") else "tdbg-1"))
        if arm not in OURS and not arm.endswith("-metrics") and ours is not None:
            yield {"case": case, "peer": arm, "times_less_cpu": theirs / ours if ours > 0 else None}


def as_markdown(result):
    rows = [
        [
            *(row["case"], row["arm"], f"{row['bare_process_ms']:.2f}", f"{row['extra_process_ms']:.2f}"),
            *(f"{row['overhead_process']:+.1%}", f"±{row['noise_process']:.0%}"),
            *(f"{row['overhead_thread']:+.1%}", f"{row['overhead_wall']:+.1%}", f"±{row['noise_wall']:.0%}"),
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
    head = ["case", "arm", "bare step ms (CPU)", "extra ms", "overhead (process CPU)", "noise"]
    head += ["thread CPU", "wall", "noise (wall)"]
    return "\n".join(
        [
            "# What capture costs where something else trains\n",
            described(result["machine"]),
            loads(result),
            f"Medians of {result['rounds'] or 1} paired blocks of {result['steps']} steps",
            "(of peers every other one),",
            f"measured in {result['seconds'] / 60:.0f} minutes;",
            "noise is the median deviation of the bare step.",
            "`ddp-2`: two processes on the machine's cores, of which the first is shown.",
            "`tdbg-1` and `tdbg-10` save every step and every 10th with all that is on by default:",
            "weights, gradients, outputs of the layers, their histograms. Peers:\n",
            *(f"- `{name}`: {what}." for name, what in WHAT.items()),
            "\nWho is not in a row, and why:\n",
            *(f"- {name}: {why}." for name, why in CANNOT.items()),
            "",
            *table(head, rows),
            "\nTimes less CPU time than a peer that saves as often:\n",
            *table(["case", "peer", "times less"], peers),
            *([""] if result["failed"] or result["cut"] else []),
            *(f"- {case}: {why}, fewer blocks than the others" for case, why in result["cut"].items()),
            *(f"- {case}, {arm}: did not run ({why})" for case, arm, why in result["failed"]),
            "",
        ]
    )


def report(result, case, found):
    """Add what was found of a case, and show it."""
    result["failed"] += [[case, arm, why] for arm, why in found["failed"].items()]
    if found["cut"] and found["times"]:
        result["cut"][case] = found["cut"]
    for row in rows_of(case, found):
        result["rows"].append(row)
        print(
            f"{case:16} {row['arm']:14} bare {row['bare_process_ms']:8.2f} ms"
            f"  extra {row['extra_process_ms']:8.2f} ms  {row['overhead_process']:+8.1%}"
            f"  (noise {row['noise_process']:.0%}; thread {row['overhead_thread']:+.1%},"
            f" wall {row['overhead_wall']:+.1%})",
            flush=True,
        )
    for arm, why in found["failed"].items():
        print(f"{case:16} {arm:14} did not run: {why}", flush=True)


def begun(options):
    """An empty result; with ``--keep``, the cases of the last one that are not measured anew."""
    result = {"machine": machine("torch", "keras", "tensorflow-cpu", "jax", "xgboost")}
    result |= {"rounds": options.rounds, "steps": options.steps, "rows": [], "failed": [], "cut": {}}
    result["seconds"] = 0.0
    last = options.out.with_suffix(".json")
    if options.keep and last.exists():
        before, again = json.loads(last.read_text()), options.cases.split(",")
        result["rows"] = [row for row in before["rows"] if row["case"] not in again]
        result["failed"] = [one for one in before["failed"] if one[0] not in again]
        result["cut"] = {case: why for case, why in before["cut"].items() if case not in again}
        result["seconds"] = before["seconds"]
    return result


def measure_case(case, options, result):
    """Measure a case and write what is known now."""
    start = time.perf_counter()
    found = in_processes(case, ("bare", *OURS, *PEERS[case]), sys.executable, options)
    report(result, case, found)
    cpu_s = found["cpu_s"]
    if options.smdebug_python and case in SMDEBUG_RUNS:
        found = in_processes(case, ("bare", "smdebug"), options.smdebug_python, options)
        report(result, case, found)
        cpu_s += found["cpu_s"]
    seconds = time.perf_counter() - start
    print(f"{case:16} took {seconds:.0f} s, {cpu_s:.0f} s of CPU", flush=True)
    result["seconds"] += seconds
    order = list(TRAININGS)
    result["rows"].sort(key=lambda row: order.index(row["case"]))
    result["ratios"] = list(ratios(result["rows"]))
    publish(result, options.out, as_markdown)


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join(TRAININGS))
    parser.add_argument("--rounds", type=int, default=4, help="paired blocks of each arm")
    parser.add_argument("--steps", type=int, default=20, help="of a block, besides its warm-up; tens")
    parser.add_argument("--quick", action="store_true", help="one cold block of 10 steps: does it work")
    parser.add_argument("--keep", action="store_true", help="keep the other cases of the last result")
    parser.add_argument("--timeout", type=int, default=150, help="seconds for one case")
    parser.add_argument("--smdebug-python", default="", help="interpreter of a venv with smdebug")
    parser.add_argument("--out", type=Path, default=RESULTS / "frameworks")
    parser.add_argument("--one", default="", help="measure one case here and print JSON lines")
    parser.add_argument("--arms", default="", help="of that case")
    parser.add_argument("--folder", type=Path, help="where that case writes")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.steps = 0, 10
    return options


def main():
    options = options_of()
    if options.one:
        keep_memory()
        measure(options.one, options.arms.split(","), options.rounds, options.steps, options.folder)
        return
    from tdbg_lab.stats import cpu

    cpu.engine().compile()  # what every process loads; else each of them compiles
    result = begun(options)
    for case in options.cases.split(","):
        measure_case(case, options, result)
    broken = [f"{case}, {arm}" for case, arm, _ in result["failed"] if arm == "bare" or arm in OURS]
    if broken:
        raise SystemExit(f"These did not run, and they are not a peer's: {'; '.join(broken)}")


if __name__ == "__main__":
    main()
