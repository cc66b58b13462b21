"""Measures the statistics kernels beside TensorBoard's histogram and numpy.

    python benchmarks/stats.py [--quick]

Every round runs each method once on each tensor, so that all of them see the same machine; the table
has medians. ``cpu`` columns are CPU time of the calling thread, the fair measure on a busy machine.
Writes ``benchmarks/results/stats.json`` and ``stats.md``. Run it on an idle machine.
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
import warnings
from pathlib import Path

import numpy as np
import torch
from machine import described, machine

from tdbg_lab.stats import cpu, reference
from tdbg_lab.stats.tensors import summarize_tensors

RESULTS = Path(__file__).parent / "results"
SIZES = {"256 KB": 1 << 16, "4 MB": 1 << 20, "64 MB": 1 << 24}
DTYPES = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "int64", "uint8")


def tensorboard(tensor):
    from torch.utils.tensorboard.summary import make_histogram

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.compat.proto.summary_pb2 import HistogramProto  # noqa: F401 - loads it

    bins = default_bins()
    array = tensor.numpy()
    return lambda: make_histogram(array, bins)


def default_bins():
    """What `SummaryWriter.add_histogram` uses."""
    edges = 1e-12 * 1.1 ** np.arange(775)
    return np.concatenate([-edges[::-1], [0.0], edges])


def numpy_statistics(tensor):
    array = tensor.numpy()

    def run():
        finite = array[np.isfinite(array)]
        return (
            finite.min(), finite.max(), finite.mean(), finite.std(), np.abs(finite).sum(),
            np.sqrt((finite * finite).sum()), (array == 0).sum(), np.isnan(array).sum(),
            np.isinf(array).sum(), np.histogram(finite, 64),
        )  # fmt: skip

    return run


def ours(tensor, axis=None):
    return lambda: summarize_tensors([tensor], channel_axes=[axis])


def interleaved(methods, rounds):
    """Median (wall, CPU) seconds of each method, run in turns; CPU is that of this thread."""
    for run in methods.values():
        run()
    wall = {name: [] for name in methods}
    busy = {name: [] for name in methods}
    for _ in range(rounds):
        for name, run in methods.items():
            repeats = 20 if name.startswith("tdbg") else 1
            t, c = time.perf_counter(), time.thread_time()
            for _ in range(repeats):
                run()
            wall[name].append((time.perf_counter() - t) / repeats)
            busy[name].append((time.thread_time() - c) / repeats)
    return {name: (statistics.median(wall[name]), statistics.median(busy[name])) for name in methods}


def sizes(rounds):
    """GB/s of float32 by size, against the peers."""
    rows = []
    for label, n in SIZES.items():
        tensor = torch.randn(n)
        torch.set_num_threads(1)
        found = interleaved(
            {"tdbg": ours(tensor), "tensorboard": tensorboard(tensor), "numpy": numpy_statistics(tensor)},
            rounds if n < 1 << 24 else max(rounds // 2, 3),
        )
        torch.set_num_threads(2)
        found |= interleaved({"tdbg 2 threads": ours(tensor)}, rounds)
        torch.set_num_threads(1)
        row = {"size": label}
        for name, (wall, busy) in found.items():
            row[name] = 4 * n / wall / 1e9
            row[f"{name} cpu"] = 4 * n / busy / 1e9
        row["x tensorboard"] = found["tensorboard"][1] / found["tdbg"][1]
        row["x numpy"] = found["numpy"][1] / found["tdbg"][1]
        rows.append(row)
    return rows


def dtypes(rounds):
    """Elements a second by type, 1 Mi elements."""
    tensors = {name: (torch.randn(1 << 20) * 20).to(getattr(torch, name)) for name in DTYPES}
    relu = torch.relu(torch.randn(32, 64, 32, 16))
    sequence = torch.randn(8, 1024, 128)
    spoilt = torch.randn(1 << 20)
    spoilt[::2000] = float("nan")
    methods = {f"tdbg {name}": ours(tensor) for name, tensor in tensors.items()}
    methods |= {
        "tdbg float32, NaN in every block": ours(spoilt),
        "tdbg float32, half zeros": ours(relu),
        "tdbg the same with channels (N, C, H, W)": ours(relu, 1),
        "tdbg channels last in memory": ours(relu.to(memory_format=torch.channels_last), 1),
        "tdbg sequence with channels (N, T, C)": ours(sequence, 2),
    }
    return [
        {
            "tensor": name.removeprefix("tdbg "),
            "Gelem/s": (1 << 20) / wall / 1e9,
            "Gelem/s cpu": (1 << 20) / busy / 1e9,
        }
        for name, (wall, busy) in interleaved(methods, rounds).items()
    ]


def small(rounds):
    """Time per tensor of 64 elements, us."""
    tensors = [torch.randn(64) for _ in range(500)]
    arrays = [tensor.numpy() for tensor in tensors]
    one = tensors[:1]
    found = interleaved(
        {
            "tdbg 500 in one call": lambda: summarize_tensors(tensors),
            "tdbg one a call": lambda: summarize_tensors(one),
            "tensorboard": tensorboard(tensors[0]),
            "numpy": numpy_statistics(tensors[0]),
            "reference": lambda: reference.summarize(arrays[:1]),
        },
        rounds * 5,
    )
    share = {"tdbg 500 in one call": 500}
    return [
        {
            "method": name,
            "us a tensor": wall / share.get(name, 1) * 1e6,
            "us cpu": busy / share.get(name, 1) * 1e6,
        }
        for name, (wall, busy) in found.items()
    ]


def first_call():
    """Seconds of `warm_up` in a fresh process: with an empty cache, then with a full one."""
    code = (
        "import time; from tdbg_lab.stats import cpu; t, c = time.perf_counter(), time.process_time(); "
        "cpu.engine().compile(); print(time.perf_counter() - t, time.process_time() - c)"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        rows = []
        for label in ("empty cache", "full cache"):
            out = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
            wall, busy = map(float, out.split())
            rows.append({"cache": label, "s": wall, "s cpu": busy})
    return rows


def precision():
    """Largest relative error of std and of the quantiles that the histogram gives."""
    from tdbg_lab.stats import quantile

    generator = torch.Generator().manual_seed(0)
    far = torch.randn(1 << 20, generator=generator) + 10_000
    wide = torch.exp(torch.randn(1 << 20, generator=generator) * 5)
    levels = np.linspace(0.001, 0.999, 999)
    got = quantile(summarize_tensors([wide]), levels)[0]
    want = np.quantile(wide.double().numpy(), levels, method="inverted_cdf")
    std = summarize_tensors([far]).std[0]
    true = far.double().std(correction=0).item()
    return {
        "std of N(10000, 1) in float32": abs(std - true) / true,
        "quantiles": float((np.abs(got - want) / want).max()),
    }


def table(rows):
    def cell(value):
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    head = list(rows[0])
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(cell(row[name]) for name in head) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, no cold start")
    quick = parser.parse_args().quick
    rounds = 3 if quick else 9
    torch.set_num_threads(1)
    facts = machine("numpy", "numba", "torch")
    cpu.engine().compile()
    results = {
        "machine": facts,
        "sizes": sizes(rounds),
        "dtypes": dtypes(rounds),
        "small": small(rounds),
        "precision": precision(),
    }
    if not quick:
        results["first_call"] = first_call()
    text = [
        "# Statistics kernels",
        "",
        "Measured by `benchmarks/stats.py`: medians of interleaved rounds; `cpu` is CPU time of the calling",
        f"thread. {described(facts)} Load average {facts['load_average']:.1f} at the start.",
        "",
        "All statistics and the histogram, float32, one thread unless noted, GB/s. Ratios are of CPU time.",
        "Targets at 64 MB: 3 GB/s, 8 x TensorBoard's `make_histogram`, 15 x numpy with `np.histogram`.",
        "",
        table(results["sizes"]),
        "",
        "By type, 1 Mi elements, one thread:",
        "",
        table(results["dtypes"]),
        "",
        "64 elements (targets: 1 us in one call, 15 us alone):",
        "",
        table(results["small"]),
        "",
        *(f"Largest relative error, {name}: {value:.2g}." for name, value in results["precision"].items()),
        "",
    ]
    if not quick:
        text += ["First call, `warm_up` in a fresh process:", "", table(results["first_call"]), ""]
    print("\n".join(text))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "stats.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "stats.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
