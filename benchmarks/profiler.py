"""What the profiler costs, and how quickly long runs are shown: sampler, phases, report, timeline.

``python benchmarks/profiler.py`` writes ``results/profiler.json`` and ``results/profiler.md``. Costs are CPU
time, which does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import psutil
from machine import described, loads, machine, publish

from tdbg_lab.capture.guard import Guard
from tdbg_lab.profiler import PHASES, PhaseRecorder
from tdbg_lab.profiler.interludes import Interludes
from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, SystemWriter, create_run
from tdbg_lab.views import call_view, figure_json
from tdbg_lab.views.report import write_report

RESULTS = Path(__file__).parent / "results"
SECONDS = 30.0
SETTLE_S = 10.0
STEPS = 2000
STEP_PHASES = ("data", "forward", "backward", "optimizer")
TARGETS = {
    "sampler": "1 % of one core at 0.5 s",
    "phases": "50 us a step",
    "report": "10 s, 15 MB",
    "timeline": "150 ms",
}


def sampler_cost(interval_s: float) -> dict[str, float]:
    """Run the real sampler beside this process; its CPU time over wall time once it is up."""
    with tempfile.TemporaryDirectory() as folder:
        run = create_run(Path(folder) / "run")
        command = [sys.executable, "-m", "tdbg_lab.profiler", str(run.path), "--pid", str(os.getpid())]
        sampler = subprocess.Popen([*command, "--interval", str(interval_s)])
        process = psutil.Process(sampler.pid)
        while not list(run.path.glob("rank-*/system-*")):
            time.sleep(0.05)
        time.sleep(SETTLE_S)
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


def interlude_cost() -> dict[str, float]:
    """Microseconds that listening adds to a call, and to a step without any."""
    module: Any = ModuleType("tensorboardX.writer")

    class SummaryWriter:
        def add_scalar(self) -> None:
            """Do nothing: all that is measured is ours."""

    module.SummaryWriter = SummaryWriter
    sys.modules[module.__name__] = module
    writer = SummaryWriter()

    def calls_us() -> float:
        begun = time.thread_time_ns()
        for _ in range(100_000):
            writer.add_scalar()
        return (time.thread_time_ns() - begun) / 1e8

    with tempfile.TemporaryDirectory() as folder:
        spans = RankWriter(create_run(Path(folder) / "run").path)
        training = SimpleNamespace(open=True, step=0, phases=PhaseRecorder(spans), guard=Guard())
        alone = statistics.median(calls_us() for _ in range(5))
        interludes = Interludes(training)
        heard = statistics.median(calls_us() for _ in range(5))
        begun = time.thread_time_ns()
        for _ in range(100_000):
            interludes.at_step_end()
        step = (time.thread_time_ns() - begun) / 1e8
        interludes.detach()
        spans.close()
    del sys.modules[module.__name__]
    return {"us_per_call": round(heard - alone, 3), "us_per_step": round(step, 3)}


def write_samples(path: Path, samples: int) -> None:
    """A run on a machine with 64 cores and 8 GPUs: 139 samples each half second, and a step each second."""
    metrics, devices = zip(*_readings(), strict=True)
    moments = samples // len(metrics)
    run = create_run(path)
    system, rank = SystemWriter(path), RankWriter(path)
    load = np.random.default_rng(0).uniform(0, 100, (64, len(metrics)))
    zero = run.info.created_ns
    for moment in range(moments):
        now = zero + moment * 500_000_000
        system.append(now, metrics, devices, load[moment % len(load)])
        if moment % 200 == 199:
            starts = [now - 10**8 * (400 - place) // 4 for place in range(400)]
            phases = [STEP_PHASES[place % 4] for place in range(400)]
            steps = [moment // 2 - 100 + place // 4 for place in range(400)]
            rank.append_spans(phases, phases, starts, [2 * 10**7] * 400, steps)
    system.close()
    rank.close()
    run.set_status("finished")


def _readings() -> list[tuple[str, str]]:
    rows = [("cpu", "cpu"), *(("cpu", f"cpu{core}") for core in range(64)), ("iowait", "cpu")]
    rows += [(name, "memory") for name in ("memory", "memory_bytes", "swap")]
    rows += [("disk_read", "disk"), ("disk_write", "disk"), ("net_recv", "net"), ("net_sent", "net")]
    rows += [(name, "process") for name in ("process_cpu", "process_memory_bytes")]
    names = ("gpu", "gpu_memory", "gpu_memory_bytes", "gpu_power_w", "gpu_temperature_c", "gpu_clock_mhz")
    names += ("gpu_throttled_thermal", "gpu_throttled_power")
    return rows + [(name, f"gpu{gpu}") for gpu in range(8) for name in names]


def report_cost(samples: int) -> dict[str, float]:
    """A whole report."""
    with tempfile.TemporaryDirectory() as folder:
        write_samples(Path(folder) / "run", samples)
        wall, cpu = time.perf_counter(), time.process_time()
        page = write_report(Path(folder) / "run", Path(folder) / "report.html")
        return {
            "samples": samples,
            "cpu_s": round(time.process_time() - cpu, 2),
            "wall_s": round(time.perf_counter() - wall, 2),
            "megabytes": round(page.stat().st_size / 1e6, 2),
        }


def timeline_cost(samples: int) -> list[dict[str, Any]]:
    """The timeline from all of the run down to a second, to Plotly JSON; the first look reads all of it."""
    with tempfile.TemporaryDirectory() as folder:
        write_samples(Path(folder) / "run", samples)
        run = open_run(Path(folder) / "run")
        whole = samples / len(_readings()) / 2
        rows: list[dict[str, Any]] = []
        for name, length in (("first look", whole), ("all", whole), ("1 h", 3600), ("1 min", 60), ("1 s", 1)):
            times = []
            for repeat in range(1 if name == "first look" else 5):
                low = min(whole - length, whole / 3 + repeat * length / 10)
                begun, cpu = time.perf_counter(), time.process_time()
                figure_json(call_view(run, "timeline", {"range": [low, low + length]}))
                times.append((time.process_time() - cpu, time.perf_counter() - begun))
            cpu_s, wall_s = (statistics.median(column) for column in zip(*times, strict=True))
            rows.append({"range": name, "cpu_ms": round(1e3 * cpu_s, 1), "wall_ms": round(1e3 * wall_s, 1)})
        return rows


def measure(*, quick: bool) -> dict[str, Any]:
    """All numbers."""
    factor = 10 if quick else 1
    return {
        "machine": machine("psutil", "numpy"),
        "targets": TARGETS,
        "sampler": [sampler_cost(interval) for interval in (0.5, 0.1)],
        "phases": phase_cost(),
        "interludes": interlude_cost(),
        "report": report_cost(10**6 // factor),
        "timeline": {"samples": 10**7 // factor, "ranges": timeline_cost(10**7 // factor)},
    }


def told(result: dict[str, Any]) -> str:
    """The numbers as a page."""
    report, timeline, interludes = result["report"], result["timeline"], result["interludes"]
    rows = [
        (
            f"sampler, every {row['interval_s']} s",
            f"{row['core_percent']} % of one core, {row['memory_mb']} MiB",
            result["targets"]["sampler"] if row["interval_s"] == 0.5 else "",
        )
        for row in result["sampler"]
    ]
    rows += [
        (
            f"{result['phases']['phases_a_step']} phases, each step, written every 10th",
            f"{result['phases']['us_per_step']} us a step",
            result["targets"]["phases"],
        ),
        (
            "listening for saving, logging and callbacks",
            f"{interludes['us_per_step']} us a step, {interludes['us_per_call']} us a call",
            "",
        ),
        (
            f"report of a run of {report['samples']:,} samples",
            f"{report['cpu_s']} s CPU, {report['megabytes']} MB",
            result["targets"]["report"],
        ),
    ]
    for row in timeline["ranges"]:
        what = f"timeline of {timeline['samples']:,} samples, {row['range']}"
        target = "" if row["range"] == "first look" else result["targets"]["timeline"]
        rows.append((what, f"{row['cpu_ms']} ms CPU", target))
    return "\n".join(
        [
            "# What the profiler costs",
            "",
            f"{described(result['machine'])} {loads(result)}",
            "The sampler runs in a process of its own.",
            "",
            "| part | cost | at most |",
            "|---|---|---|",
            *(f"| {part} | {cost} | {most} |" for part, cost, most in rows),
            "",
        ]
    )


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples, and nothing is kept")
    quick = parser.parse_args().quick
    assert set(STEP_PHASES) <= set(PHASES)
    result = measure(quick=quick)
    if quick:
        print(json.dumps(result, indent=1))
    else:
        print(publish(result, RESULTS / "profiler", told))


if __name__ == "__main__":
    main()
