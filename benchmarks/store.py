"""Measures the run store: writing, sealing, opening, one tensor's history, the overview.

    python benchmarks/store.py [--quick]

Writes ``benchmarks/results/store.json`` and ``store.md``. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from machine import described, loads, machine, publish

from tdbg_lab.records import Kind, Mode, StatsBlock, StatsRows, TensorKey
from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, create_run, seal

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULTS = Path(__file__).parent / "results"
TENSORS = 500


def keys(n: int) -> tuple[TensorKey, ...]:
    kinds = (Kind.WEIGHT, Kind.GRADIENT, Kind.ACTIVATION, Kind.BIAS, Kind.OPTIMIZER)
    return tuple(
        TensorKey(
            f"{kinds[i % 5]}/encoder.layers.{i // 5}.linear",
            kinds[i % 5],
            f"encoder.layers.{i // 5}.linear",
            "float32",
            (256, 256),
            ("default",),
        )
        for i in range(n)
    )


def blocks(n: int, bins: int) -> Iterator[StatsBlock]:
    """Blocks of `n` tensors with the histogram of 65,536 normal values in `bins` bins; each is new."""
    random = np.random.default_rng(0)
    shape = np.exp(-(np.linspace(-2.5, 2.5, bins) ** 2))
    zeros = np.zeros(n, np.int64)
    while True:
        counts = random.poisson(shape * 65536 / shape.sum(), (n, bins)).astype(np.int64) + 1
        yield StatsBlock(
            count=counts.sum(axis=1),
            nan_count=zeros,
            pos_inf_count=zeros,
            neg_inf_count=zeros,
            zero_count=random.integers(0, 9, n),
            **{name: random.normal(size=n) for name in ("min", "max", "mean", "std", "l1", "l2")},
            hist_offsets=np.arange(n + 1, dtype=np.int64) * bins,
            hist_bins=np.tile(np.arange(400, 400 + bins, dtype=np.uint16), n),
            hist_counts=counts.ravel(),
            channel_offsets=np.zeros(n + 1, np.int64),
            channel_zero_frac=np.empty(0, np.float32),
            channel_mean=np.empty(0, np.float32),
        )


def write(path: Path, steps: int, bins: int) -> dict[str, float]:
    """CPU ms of the calling thread per append, bytes a step live and sealed, seconds of `close`."""
    folder = create_run(path)
    writer = RankWriter(folder.path)
    tensors, make = keys(TENSORS), blocks(TENSORS, bins)
    cpu, wall = [], []
    begin_process, begin_thread = time.process_time(), time.thread_time()
    for step in range(steps):
        rows = StatsRows(step, Mode.TRAIN, 0, time.time_ns(), tensors, next(make))
        begin, begin_wall = time.thread_time(), time.perf_counter()
        writer.append(rows)
        cpu.append(time.thread_time() - begin)
        wall.append(time.perf_counter() - begin_wall)
    live = writer.bytes_written / steps
    begin = time.perf_counter()
    writer.close()
    close_s = time.perf_counter() - begin
    while any(writer.path.glob("*.arrows")):  # `close` waits for a minute only
        time.sleep(0.1)
    background = time.process_time() - begin_process - (time.thread_time() - begin_thread)
    folder.set_status("finished", last_step=steps - 1)
    sealed = sum(file.stat().st_size for file in writer.path.glob("*.parquet")) / steps
    return {
        "append_cpu_ms_mean": 1e3 * statistics.fmean(cpu),
        "append_cpu_ms_p10": 1e3 * float(np.quantile(cpu, 0.1)),
        "append_cpu_ms_p50": 1e3 * statistics.median(cpu),
        "append_wall_ms_p50": 1e3 * statistics.median(wall),
        "append_wall_ms_p99": 1e3 * float(np.quantile(wall, 0.99)),
        "sealing_cpu_ms_per_step": 1e3 * background / steps,
        "live_bytes_per_step": live,
        "sealed_bytes_per_step": sealed,
        "close_s": close_s,
    }


def timed(call, repeats: int = 7) -> dict[str, float]:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - begin))
    return {"first_ms": times[0], "median_ms": statistics.median(times[1:] or times), "best_ms": min(times)}


def reading(path: Path) -> dict[str, dict[str, float]]:
    names = [key.name for key in keys(TENSORS)]

    def cold(call):
        """A tensor not read before each time: nothing of it is in the cache of columns."""
        return lambda: call(open_run(path))

    run = open_run(path)
    some = iter(names[7::31])
    result = {
        "history_mean": timed(lambda: run.tensor(next(some)).history(["mean"])),
        "history_10_columns": timed(
            lambda: run.tensor(next(some)).history(
                ["min", "max", "mean", "std", "l1", "l2", "zero_frac", "nan_count", "inf_count", "count"]
            )
        ),
        "histograms": timed(lambda: run.tensor(names[250]).histograms()),
        "histograms_100": timed(lambda: run.tensor(names[250]).histograms(n_out=100)),
    }
    every = tuple(Kind)
    result["overview"] = timed(lambda: run.overview(kind=every, column="l2"))
    result["overview_200"] = timed(lambda: run.overview(kind=every, column="l2", n_out=200))
    result["open"] = timed(cold(lambda run: run.last_step))
    result["refresh_unchanged"] = timed(run.refresh, 20)
    return result


OPENING = """
import json, sys, time
import psutil, numpy, pandas, pyarrow.parquet
from tdbg_lab.run import open_run
process = psutil.Process()
before = process.memory_info().rss
begin = time.perf_counter()
run = open_run(sys.argv[1])
opened = time.perf_counter() - begin
rows = len(run.steps()) * len(run.tensors())
rss = process.memory_info().rss - before
begin = time.perf_counter()
frame = run.tensor(run.tensor_names()[123]).history(["mean"])
history = time.perf_counter() - begin
begin = time.perf_counter()
run.overview(kind="weight", column="l2", n_out=500)
overview = time.perf_counter() - begin
print(json.dumps({"rows": rows, "open_s": opened, "open_rss_mb": rss / 2**20, "history_ms": 1e3 * history,
    "history_rows": len(frame), "overview_100_tensors_500_steps_ms": 1e3 * overview,
    "rss_after_reading_mb": (process.memory_info().rss - before) / 2**20}))
"""


def opening(path: Path) -> dict[str, float]:
    runs = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", OPENING, str(path)], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(3)
    ]
    return sorted(runs, key=lambda run: run["open_s"])[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10^6 rows instead of 10^7")
    quick = parser.parse_args().quick
    result: dict[str, object] = {"machine": machine("numpy", "pandas", "pyarrow"), "tensors": TENSORS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "thousand"
        result["write_1000_steps"] = write(path, 1000, 64)
        result["read_1000_steps"] = reading(path)
        large = Path(folder) / "large"
        seal._lower_priority = lambda: None  # on a busy machine sealing would take for ever
        result["write_large"] = write(large, 2000 if quick else 20_000, 8)
        result["open_large"] = opening(large)
    publish(result, RESULTS / "store", report)
    print(report(result))


def again(times) -> str:
    return f"{times['median_ms']:.1f} ({times['best_ms']:.1f}) ms"


def both(times) -> str:
    return f"{times['first_ms']:.0f} / {times['median_ms']:.0f} ms"


def report(result) -> str:
    write_, read, large = result["write_1000_steps"], result["read_1000_steps"], result["open_large"]
    rows = [
        (
            "append, CPU of the calling thread, median (best tenth)",
            f"{write_['append_cpu_ms_p50']:.2f} ({write_['append_cpu_ms_p10']:.2f}) ms a step",
            "0.5 ms",
        ),
        (
            "append, wall, median / p99",
            f"{write_['append_wall_ms_p50']:.2f} / {write_['append_wall_ms_p99']:.2f} ms",
            "",
        ),
        ("sealing, CPU of the background thread", f"{write_['sealing_cpu_ms_per_step']:.1f} ms a step", ""),
        (
            "on disk, live / sealed",
            (
                f"{write_['live_bytes_per_step'] / 1e3:.0f} / "
                f"{write_['sealed_bytes_per_step'] / 1e3:.0f} kB a step"
            ),
            "",
        ),
        ("history of a new tensor, one column: median (best)", again(read["history_mean"]), "10 ms"),
        (
            "history of a new tensor, ten columns: median (best)",
            again(read["history_10_columns"]),
            "10 ms",
        ),
        ("histograms of one tensor: first / again", both(read["histograms"]), ""),
        ("overview 500 x 1,000: first / again", both(read["overview"]), "100 ms"),
        ("refresh when nothing changed: median (best)", again(read["refresh_unchanged"]), ""),
        (
            f"opening {large['rows']:.0e} rows",
            f"{large['open_s']:.2f} s, {large['open_rss_mb']:.0f} MB",
            "1 s, 300 MB",
        ),
        (
            f"there: history of one tensor over {large['history_rows']} steps",
            f"{large['history_ms']:.0f} ms",
            "",
        ),
        (
            "there: overview of 100 tensors, 500 steps",
            f"{large['overview_100_tensors_500_steps_ms']:.0f} ms",
            "",
        ),
        ("there: memory after both", f"{large['rss_after_reading_mb']:.0f} MB", ""),
    ]
    lines = [
        "# Store",
        "",
        described(result["machine"]),
        loads(result),
        "",
        "500 tensors a step, 64 histogram bins each, 1,000 steps, sealed (the large run: 8 bins).",
        "",
        "| what | measured | goal |",
        "|---|---|---|",
        *(f"| {what} | {measured} | {goal} |" for what, measured, goal in rows),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
