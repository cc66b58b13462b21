"""What the profiler costs: share of a core of the sampler, time of the phases in a step.

``python benchmarks/profiler.py`` writes ``results/profiler.json`` and ``results/profiler.md``.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tdbg_lab.profiler import PHASES, PhaseRecorder
from tdbg_lab.store import RankWriter, create_run

RESULTS = Path(__file__).parent / "results"
SECONDS = 20.0
STEPS = 2000
STEP_PHASES = ("data", "forward", "backward", "optimizer")


def sampler_cost(interval_s: float) -> dict[str, float]:
    """Run the real sampler beside this process; its CPU time over wall time once it is up."""
    with tempfile.TemporaryDirectory() as folder:
        run = create_run(Path(folder) / "run")
        command = [sys.executable, "-m", "tdbg_lab.profiler", str(run.path), "--pid", str(os.getpid())]
        sampler = subprocess.Popen([*command, "--interval", str(interval_s)])
        process = psutil.Process(sampler.pid)
        while not list(run.path.glob("rank-*/system-*")):
            time.sleep(0.05)
        before, begun = sum(process.cpu_times()[:2]), time.monotonic()
        time.sleep(SECONDS)
        used, wall = sum(process.cpu_times()[:2]) - before, time.monotonic() - begun
        memory = process.memory_info().rss
        run.set_status("finished")
        sampler.wait(30)
        return {
            "interval_s": interval_s,
            "core_percent": round(100 * used / wall, 3),
            "start_cpu_s": round(before, 2),
            "memory_mb": round(memory / 2**20, 1),
            "samples_per_s": round(1 / interval_s, 2),
        }


def phase_cost() -> dict[str, float]:
    """Microseconds of CPU that four phases cost a step, all writing included."""
    costs = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            writer = RankWriter(create_run(Path(folder) / "run").path)
            recorder = PhaseRecorder(writer)
            begun = time.thread_time_ns()
            for step in range(STEPS):
                recorder.begin("data", step)
                for phase in STEP_PHASES[1:]:
                    recorder.switch(phase, step)
                recorder.end_all()
                if step % 10 == 0:
                    recorder.flush()
            recorder.close()
            costs.append((time.thread_time_ns() - begun) / STEPS / 1e3)
            writer.close()
    return {"phases_a_step": len(STEP_PHASES), "us_per_step": round(statistics.median(costs), 2)}


def main() -> None:
    assert set(STEP_PHASES) <= set(PHASES)
    result = {
        "machine": f"{platform.machine()}, {psutil.cpu_count()} cores, Python {platform.python_version()}",
        "sampler": [sampler_cost(interval) for interval in (0.5, 0.1)],
        "phases": phase_cost(),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "profiler.json").write_text(json.dumps(result, indent=2) + "\n")
    lines = [
        "# What the profiler costs",
        "",
        f"{result['machine']}; the sampler runs in a process of its own.",
        "",
        "| part | cost |",
        "|---|---|",
        *(
            f"| sampler, every {row['interval_s']} s | {row['core_percent']} % of one core, "
            f"{row['memory_mb']} MiB, {row['start_cpu_s']} s CPU to start |"
            for row in result["sampler"]
        ),
        (
            f"| {result['phases']['phases_a_step']} phases, each step, written every 10th | "
            f"{result['phases']['us_per_step']} us a step |"
        ),
        "",
    ]
    (RESULTS / "profiler.md").write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
