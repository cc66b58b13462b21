"""Measures the statistics on a GPU beside what PyTorch's own operations take for less.

    python benchmarks/stats_cuda.py

Time on the device, by events, in turns; medians. ``torch`` is what one writes by hand: least, greatest, mean,
standard deviation, both norms, zeros, NaN, infinities, and a histogram of 64 bins. ``copy`` only brings the
values to the host, as whoever measures there must. Writes ``benchmarks/results/stats_cuda.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial
from pathlib import Path

import torch
from machine import described, loads, machine, publish, table

from tdbg_lab.stats.device import DeviceBuffer

RESULTS = Path(__file__).parent / "results"
CASES = (
    ("4 MB", "float32", (1 << 20,), None),
    ("64 MB", "float32", (1 << 24,), None),
    ("1 GB", "float32", (1 << 28,), None),
    ("512 MB", "bfloat16", (1 << 28,), None),
    ("1 GB, 3072 channels, last", "float32", (87381, 3072), 1),
    ("1 GB, 64 channels of images", "float32", (64, 64, 256, 256), 1),
)
SMALL = 300
"""Small tensors that are measured between two clocks."""


def by_hand(x):
    finite = torch.isfinite(x)
    return (
        x.min(), x.max(), x.mean(), x.std(), torch.linalg.vector_norm(x, 1), torch.linalg.vector_norm(x),
        (x == 0).sum(), torch.isnan(x).sum(), (~finite).sum(), torch.histc(x.float(), 64),
    )  # fmt: skip


def device_ms(run, repeats):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(repeats):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / repeats


def case(label, dtype, shape, axis, rounds):
    x = torch.randn(shape, device="cuda").to(getattr(torch, dtype))
    buffer = DeviceBuffer("cuda")

    def ours():
        buffer.add([x], [axis])

    methods = {"tdbg": ours, "torch": partial(by_hand, x), "copy": x.cpu}
    found = {name: [] for name in methods}
    for _ in range(rounds + 1):  # the first warms up
        for name, run in methods.items():
            found[name].append(device_ms(run, 1 if name == "copy" else 5))
            if name == "tdbg":
                ticket = buffer.send()
                ticket.wait()
                ticket.read()
    ms = {name: statistics.median(times[1:]) for name, times in found.items()}
    size = x.numel() * x.itemsize
    return {
        "case": label,
        "dtype": dtype,
        **{f"{name}_ms": one for name, one in ms.items()},
        "gb_per_s": size / ms["tdbg"] / 1e6,
        "x_torch": ms["torch"] / ms["tdbg"],
        "x_copy": ms["copy"] / ms["tdbg"],
    }


def calls(rounds):
    """Microseconds of the calling thread: a small tensor, without and with channels, and 150 of them."""
    x = torch.randn(64, 256, device="cuda")
    many = [torch.randn(256, device="cuda") for _ in range(150)]
    asked = {"one": ([x], [None]), "one with channels": ([x], [1]), "150 at once": (many, None)}
    buffer, times = DeviceBuffer("cuda"), {name: [] for name in asked}
    for _ in range(rounds):
        for name, (tensors, axes) in asked.items():
            repeats = SMALL // len(tensors) + 1
            start = time.perf_counter()
            for _ in range(repeats):
                buffer.add(tensors, axes)
            times[name].append((time.perf_counter() - start) / repeats * 1e6)
            ticket = buffer.send()
            ticket.wait()
            ticket.read()
    return {name: statistics.median(one[1:]) for name, one in times.items()}


def as_markdown(result):
    rows = [
        [
            *(row["case"], row["dtype"], f"{row['tdbg_ms']:.3f}", f"{row['gb_per_s']:.0f}"),
            *(f"{row['torch_ms']:.3f}", f"{row['copy_ms']:.2f}", f"{row['x_torch']:.1f}"),
            f"{row['x_copy']:.0f}",
        ]
        for row in result["cases"]
    ]
    head = ["tensor", "type", "tdbg ms", "GB/s", "torch ms", "copy ms", "x torch", "x copy"]
    spent = ", ".join(f"{name}: {us:.0f} us" for name, us in result["calls_us"].items())
    return "\n".join(
        [
            "# The statistics on a GPU\n",
            described(result["machine"]),
            loads(result),
            "Time on the device. torch: the moments and a histogram of 64 bins by PyTorch's operations.",
            "copy: bringing the values to the host, and nothing else.\n",
            *table(head, rows),
            f"\nTime of the calling thread for a call: {spent}.",
            "",
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=RESULTS / "stats_cuda")
    options = parser.parse_args()
    facts = machine("torch", "triton", "numpy") | {"gpu": torch.cuda.get_device_name()}
    result = {"machine": facts, "cases": [], "calls_us": calls(options.rounds)}
    for one in CASES:
        result["cases"].append(case(*one, options.rounds))
        publish(result, options.out, as_markdown)  # what is measured so far: it may be cut short
    print(options.out.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()
