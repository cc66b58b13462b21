"""What capture costs: a training step with it against the same step without.

Every weight, every gradient and every leaf output is captured (tdbg-watch: no outputs and nothing of the
loop, which is what wandb.watch takes). Each arm is measured in pairs of a block of bare steps and a block of
its own, which take turns, so that a noisy neighbour hits both alike: long steps one by one, short ones as
many as a block has. The figure is the median of the paired differences over the median bare step. Wall time,
time on the CPU of the training thread and of the whole process are measured. The arm control installs
nothing: what it shows is what this measurement cannot tell from nothing. The first steps of each arm are
left out: a training has thousands. Freed memory is kept by the process, for every arm (see `keep_memory`).

    python benchmarks/overhead.py                      # all models and arms, writes results/
    python benchmarks/overhead.py --models mlp --arms tdbg-1,tdbg-10 --pairs 20
    python benchmarks/overhead.py --smdebug-python PATH   # adds smdebug with reductions, in its own venv
    python benchmarks/overhead.py --device cuda --models cnn,gpt,gpt2 --threads 1 --out FILE    # on a GPU
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from machine import described, keep_memory, loads, machine, publish, table
from overhead_arms import EVERY, install
from small_agent import Agent
from small_models import LARGE, Training

RESULTS = Path(__file__).parent / "results"
AGENT = "agent"
MODELS = ("mlp", "cnn", "gpt", AGENT)
ARMS = (
    *("control", "tdbg-1", "tdbg-watch", "tdbg-10", "tdbg-auto", "tdbg-never"),
    *("tensorboard", "wandb", "numpy"),
)
PEERS = ("tensorboard", "wandb", "numpy", "smdebug")
FOR_US = (AGENT, LARGE)
"""What no peer is measured on: three models, and one of which their step would take most of a minute."""
PAIRS = {"mlp": 48, "cnn": 18, "gpt": 24, AGENT: 24, LARGE: 4}
FINE = {"mlp": 96, "cnn": 24, "gpt": 8, AGENT: 32, LARGE: 4}
"""Pairs of blocks for arms that differ little from nothing."""
ON_DEVICE = 2
"""Times as many on a GPU, whose steps are short."""
ROUNDS, ROUNDS_LARGE = 4, 2
"""Most pairs of models that an arm is measured on."""
WARM, PEER_WARM = 20, 6
"""Steps before the clocks start: the first ones of an arm fill its caches, and we look closely at the first
16 of a run."""
CHOOSING = {"mlp": 300, "cnn": 60, AGENT: 150}
"""The same where the distance of saved steps is to be chosen, and is a long one."""
ON_GPU = (
    "On a GPU wall time counts, of ten steps until it is through: a thread that waits takes CPU time, too."
)
LIKE = {"wandb": "tdbg-watch"}
"""Which arm of ours takes what a peer takes."""
IN_A_ROW = {"mlp": 10, AGENT: 10}
"""Most steps before it is the other's turn, where it is not one: of steps so short, each would find the
caches full of what the other left there."""
FINE_ARMS = ("control", "tdbg-10", "tdbg-auto", "tdbg-never")
SHARE = {"tensorboard": 0.4, "numpy": 0.5, "wandb": 0.5, "smdebug": 0.4}
"""Pairs of a slow peer over those of its model."""
TARGETS = {
    ("gpt", "tdbg-1"): 0.08,
    ("cnn", "tdbg-1"): 0.15,
    ("mlp", "tdbg-10"): 0.08,
    ("cnn", "tdbg-10"): 0.02,
    ("gpt", "tdbg-10"): 0.02,
}
UNSAVED_US = 100
"""CPU time that a step which is not saved may cost, microseconds."""


def clocks():
    return np.array([time.perf_counter(), time.thread_time(), time.process_time()])


def timed(training, n):
    """Wall, thread and process seconds per step; until a GPU has done them."""
    start = clocks()
    training.steps(n)
    if training.x.is_cuda:
        torch.cuda.synchronize()
    return (clocks() - start) / n


class Turns(NamedTuple):
    """How the steps of two models take turns."""

    block: int
    in_a_row: int
    pairs: int
    round: int
    warm: int
    """Steps before the clocks start."""


def alternating(bare, seen, turns):
    """Seconds a step of so many blocks of each; who comes first takes turns."""
    rows, in_a_row = [], turns.in_a_row
    for pair in range(turns.pairs):
        first, second = (bare, seen) if (pair + turns.round // 2) % 2 else (seen, bare)
        parts = [(timed(first, in_a_row), timed(second, in_a_row)) for _ in range(turns.block // in_a_row)]
        a, b = np.mean(parts, axis=0)
        rows.append((a, b) if first is bare else (b, a))
    return rows


def measure(model, arm, threads, pairs, device):
    """Paired blocks of bare steps and steps of the arm, on several pairs of equal models.

    Where in memory a model happens to lie can slow its steps by half: with one pair of models that
    would count for or against the arm.
    """
    torch.set_num_threads(threads)
    keep_memory()
    block = in_a_row = 10  # a GPU is several steps behind, and not asked in between
    if device == "cpu":
        every = EVERY.get(arm, 1)
        block = 10 if every == "auto" else min(every, 10)
        in_a_row = min(IN_A_ROW.get(model, 1), block)
    warm = PEER_WARM if arm in PEERS else CHOOSING.get(model, WARM) if arm == "tdbg-auto" else WARM
    rounds = min(ROUNDS_LARGE if model == LARGE else ROUNDS, pairs)
    rows = []
    for turn in range(rounds):
        rows += paired((model, device), arm, Turns(block, in_a_row, -(-pairs // rounds), turn, warm))
    without, with_ = (np.array([row[i] for row in rows]) for i in (0, 1))
    base = np.median(without, axis=0)
    extra = np.median(with_ - without, axis=0)
    error = standard_error((with_ - without)[:, 0])
    spread = np.median(np.abs(without - base), axis=0)
    quiet, quiet_with = (np.quantile(one, 0.1, axis=0) for one in (without, with_))
    return {
        "model": model,
        "arm": arm,
        "threads": threads,
        "pairs": pairs,
        "steps_per_block": block,
        "bare_ms": base[0] * 1e3,
        "extra_ms": extra[0] * 1e3,
        "overhead": extra[0] / base[0],
        "standard_error": error / base[0],
        "noise": spread[0] / base[0],
        "bare_thread_cpu_ms": base[1] * 1e3,
        "extra_thread_cpu_ms": extra[1] * 1e3,
        "overhead_thread_cpu": extra[1] / base[1],
        "quiet_bare_thread_cpu_ms": quiet[1] * 1e3,
        "quiet_extra_thread_cpu_ms": (quiet_with - quiet)[1] * 1e3,
        "overhead_quiet": (quiet_with - quiet)[1] / quiet[1],
        "extra_process_cpu_ms": extra[2] * 1e3,
        "overhead_process_cpu": extra[2] / base[2],
    }


def standard_error(differences):
    """Of their median, from the median deviation, as if they were normal; nan for a single one."""
    if len(differences) < 2:
        return float("nan")
    deviation = np.median(np.abs(differences - np.median(differences)))
    return 1.2533 * 1.4826 * deviation / np.sqrt(len(differences))


def made(model, device):
    """What is trained."""
    return Agent(device) if model == AGENT else Training(model, device)


def paired(model, arm, turns):
    """Seconds a step, without and with the arm, of so many blocks of each.

    What can be taken off again is then put on the other of the two models, and the mean of both is told:
    where in memory they lie no longer counts.
    """
    one, other = made(*model), made(*model)
    if turns.round % 2:
        one, other = other, one
    rows = blocks(arm, one, other, turns)
    if arm in PEERS:
        return rows
    crossed = blocks(arm, other, one, turns)
    return [((a + c) / 2, (b + d) / 2) for (a, b), (c, d) in zip(rows, crossed, strict=True)]


def blocks(arm, bare, seen, turns):
    """The rows of one model without and the other with the arm, which is taken off again."""
    folder = Path(tempfile.mkdtemp(prefix="overhead-"))
    install(arm, seen, folder)
    try:
        bare.steps(turns.warm)
        seen.steps(turns.warm)
        if arm == "tdbg-auto":  # a block is the distance between two saved steps, a power of two, cut evenly
            every, most = seen.save_every(), 1 << turns.in_a_row.bit_length() - 1
            turns = turns._replace(block=every, in_a_row=min(every, most))
        return alternating(bare, seen, turns)
    finally:
        seen.close()
        shutil.rmtree(folder, ignore_errors=True)


def pairs_for(model, arm, device, given):
    if given:
        return given
    if arm in PEERS:
        return max(3, round(PAIRS[model] * SHARE[arm]))
    return (FINE if arm in FINE_ARMS else PAIRS)[model] * (ON_DEVICE if device == "cuda" else 1)


def measured_elsewhere(python, model, threads, pairs):
    """The smdebug arm, in the interpreter that has smdebug."""
    command = [python, __file__, "--one", f"{model},smdebug,{threads},{pairs}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    print(f"smdebug on {model} did not run: {done.stderr.strip().splitlines()[-1:]}")
    return None


# -- reporting ------------------------------------------------------------------------------------


def verdict(row):
    if row["arm"] == "tdbg-never":
        spent = row["quiet_extra_thread_cpu_ms"] * 1e3
        return f"{spent:.0f} us, {'met' if spent <= UNSAVED_US else 'missed'} (<= {UNSAVED_US} us)"
    target = TARGETS.get((row["model"], row["arm"]))
    if target is None or row["threads"] != 2:
        return ""
    return f"{'met' if row['overhead'] <= target else 'missed'} (<= {target:.0%})"


def ratio(theirs, ours):
    """Theirs over ours; None when ours drowned in noise."""
    return theirs / ours if ours > 0 else None


def ratios(rows):
    """How much less tdbg costs than each peer, by model and threads: with all it takes, and like for like."""
    own = {(r["model"], r["threads"], r["arm"]): r for r in rows if r["arm"].startswith("tdbg")}
    found = []
    for row in rows:
        for arm in ("tdbg-1", LIKE.get(row["arm"])):
            ours = own.get((row["model"], row["threads"], arm))
            if ours and row["arm"] in PEERS:
                found.append(compared(row, ours))
    return found


def compared(row, ours):
    return {
        "model": row["model"],
        "threads": row["threads"],
        "peer": row["arm"],
        "ours": ours["arm"],
        "times_less_wall": ratio(row["extra_ms"], ours["extra_ms"]),
        "times_less_thread_cpu": ratio(row["quiet_extra_thread_cpu_ms"], ours["quiet_extra_thread_cpu_ms"]),
    }


def as_markdown(result):
    clock = ("overhead_thread_cpu", "overhead_process_cpu", "overhead_quiet")
    rows = [
        [
            *(row["model"], str(row["threads"]), row["arm"]),
            *(f"{row['bare_ms']:.2f}", f"{row['extra_ms']:.2f}", f"{row['overhead']:+.1%}"),
            *(
                f"±{row['standard_error']:.1%}",
                f"±{row['noise']:.0%}",
                *(f"{row[name]:+.1%}" for name in clock),
                verdict(row),
            ),
        ]
        for row in result["rows"]
    ]
    kinds = ("times_less_wall", "times_less_thread_cpu")
    peers = [
        [
            *(row["model"], str(row["threads"]), row["peer"], row["ours"]),
            *("noise" if row[name] is None else f"{row[name]:.1f}" for name in kinds),
        ]
        for row in result["ratios"]
    ]
    return "\n".join(
        [
            "# What capture costs\n",
            *([f"**{result['note']}**\n"] if "note" in result else []),
            described(result["machine"]),
            loads(result),
            "Every weight, gradient and leaf output (wandb.watch: no outputs; smdebug: no histogram).",
            "agent: soft actor-critic, a step of which has four forwards and three optimizers; no peer.",
            "tdbg-watch: weights and gradients only, and no facts about the loop: what wandb.watch takes.",
            "Medians of paired blocks, with the standard error of the median (from the median deviation);",
            "noise is the median deviation of the bare step. control: nothing is installed.",
            "The quietest tenth is the thread CPU time of the fastest blocks: fairest on a busy machine.",
            "tdbg-auto: saved as often as takes 5 % of the time at most, besides what other steps cost.",
            "tdbg-never: steps that are not saved, judged by that figure.",
            "Freed memory is kept by the process, for every arm: no page faults by where blocks lie.",
            *([ON_GPU] if "gpu" in result["machine"] else []),
            "",
            *table(
                [
                    *("model", "threads", "arm", "bare step ms", "extra ms", "overhead", "error", "noise"),
                    *("thread CPU", "process CPU", "quietest tenth", "target"),
                ],
                rows,
            ),
            "\nTimes less than a peer, every step:\n",
            *table(["model", "threads", "peer", "ours", "wall", "thread CPU"], peers),
            "",
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--threads", default="2")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument(
        "--pairs", type=int, default=0, help="blocks per arm; by default it depends on the model"
    )
    parser.add_argument("--smdebug-python", default="", help="interpreter of a venv with smdebug")
    parser.add_argument("--keep", action="store_true", help="keep what the last result has besides")
    parser.add_argument("--out", type=Path, default=RESULTS / "overhead")
    parser.add_argument("--one", default="", help="measure MODEL,ARM,THREADS,PAIRS and print one JSON line")
    options = parser.parse_args()
    if options.one:
        model, arm, threads, pairs = options.one.split(",")
        print(json.dumps(measure(model, arm, int(threads), int(pairs), options.device)))
        return
    facts = machine("torch", "numpy")
    if options.device == "cuda":
        facts = machine("torch", "triton", "numpy") | {"gpu": torch.cuda.get_device_name()}
    models, arms = options.models.split(","), options.arms.split(",")
    anew = [*arms, "smdebug"] if options.smdebug_python else arms
    result = {"machine": facts, "rows": kept(options.out, models, anew) if options.keep else []}
    for model in models:
        for threads in map(int, options.threads.split(",")):
            for arm in arms:
                if model in FOR_US and arm in PEERS:
                    continue
                pairs = pairs_for(model, arm, options.device, options.pairs)
                row = measure(model, arm, threads, pairs, options.device)
                report(result, row)
                tell(result, options.out)
            if options.smdebug_python and model not in FOR_US:
                pairs = pairs_for(model, "smdebug", options.device, options.pairs)
                row = measured_elsewhere(options.smdebug_python, model, threads, pairs)
                if row:
                    report(result, row)
                    tell(result, options.out)


def place(row):
    """Where a row stands in the table."""
    return [*MODELS, LARGE].index(row["model"]), row["threads"], [*ARMS, "smdebug"].index(row["arm"])


def kept(out, models, arms):
    """Rows of the last result that are not measured anew."""
    rows = json.loads(out.with_suffix(".json").read_text())["rows"]
    return [row for row in rows if row["model"] not in models or row["arm"] not in arms]


def tell(result, out):
    """Publish what is measured so far: a run takes long, and may be cut short."""
    result["rows"].sort(key=place)
    result["ratios"] = ratios(result["rows"])
    publish(result, out, as_markdown)


def report(result, row):
    result["rows"].append(row)
    print(
        f"{row['model']:5} {row['threads']} {row['arm']:12} bare {row['bare_ms']:8.2f} ms"
        f"  extra {row['extra_ms']:8.2f} ms  {row['overhead']:+8.1%}"
        f" ±{row['standard_error']:.1%}  (noise {row['noise']:.0%};"
        f" thread cpu {row['overhead_thread_cpu']:+.1%}, process cpu {row['overhead_process_cpu']:+.1%})"
        f" quiet {row['overhead_quiet']:+.1%} {verdict(row)}",
        flush=True,
    )


if __name__ == "__main__":
    main()
