"""What steps that are not saved cost a compiled model: with capture attached against the bare compiled step.

A pair is a block of bare steps and a block of captured ones of the same model; which comes first takes turns.
Judged is the CPU time of the training thread in the quietest quarter of the blocks, against which the noise
is the standard error of the median difference within a pair (wall time means nothing on a busy machine; it is
shown beside). Losses are recorded every step, as they are by default.

    python benchmarks/compiled.py                      # all models and forms, writes results/: 5 to 8 minutes
    python benchmarks/compiled.py --models mlp --forms wrapper --pairs 20 --backend aot_eager
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from machine import described, keep_memory, loads, machine, publish, table
from overhead import RESULTS, timed
from small_models import Training
from torch._dynamo.utils import counters

import tdbg_lab as tdbg

MODELS = ("mlp", "cnn", "gpt")
FORMS = ("wrapper", "inner", "in place", "function")
FEW_FORMS = {"gpt": ("wrapper", "function")}
"""Of a model that takes long to compile and to run."""
STEPS = {"mlp": 40, "cnn": 6, "gpt": 3}
WARM = {"mlp": 20, "cnn": 3, "gpt": 2}
"""Steps before a block: the first with capture is saved, so it runs eagerly."""
WARM_PAIRS = 2
"""In which everything is compiled, with and without hooks."""
PAIRS = {"mlp": 24, "cnn": 12, "gpt": 8}
TARGET = 0.02


class Whole(torch.nn.Module):
    """A class of one's own around a model: PyTorch compiles none of its own classes in place."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)


class Compiled(Training):
    """Training of a compiled model; `function` compiles the forward pass with its loss."""

    def __init__(self, model, form, backend):
        super().__init__(model)
        self.model = model
        if form == "in place":
            self.net = Whole(self.net)
        self.form, self.inner = form, self.net
        if form == "in place":
            self.net.compile(backend=backend)
        elif form != "function":
            self.net = torch.compile(self.net, backend=backend)
        self.forward = self._forward
        if form == "function":
            self.forward = torch.compile(self._forward, backend=backend)

    def _forward(self, x, y):
        return self.criterion(self.net(x).flatten(0, -2), y.flatten())

    def steps(self, n):
        for _ in range(n):
            self.optimizer.zero_grad()
            self.forward(self.x, self.y).backward()
            self.optimizer.step()

    def attach(self, folder):
        return tdbg.attach(
            self.net if self.form == "wrapper" else self.inner,
            optimizer=self.optimizer,
            loss=self.criterion,
            store=folder / "run",
            save_every=10**9,
            profiler=False,
        )


def bare(training, block):
    """Seconds a step without capture."""
    training.steps(WARM[training.model])
    return timed(training, block)


def seen(training, block):
    """Seconds a step with capture, once its first steps are over, which are looked at more closely."""
    with tempfile.TemporaryDirectory(prefix="compiled-") as folder:
        handle = training.attach(Path(folder))
        training.steps(WARM[training.model])
        found = timed(training, block)
        handle.detach()
    return found


def measure(model, form, backend, pairs):
    """Blocks of steps of one model, in turns bare and with capture attached.

    Of two equal models, one may lie in memory so that all its steps are slower by several per cent.
    """
    torch.set_num_threads(1)
    torch._dynamo.reset()
    training, block = Compiled(model, form, backend), STEPS[model]
    rows = []
    for pair in range(WARM_PAIRS + pairs):
        if pair == WARM_PAIRS:
            graphs = counters["stats"]["unique_graphs"]
        first, second = (bare, seen) if pair % 2 else (seen, bare)
        times = {first: first(training, block), second: second(training, block)}
        rows.append((times[bare], times[seen]))
    again = counters["stats"]["unique_graphs"] != graphs
    rows = rows[WARM_PAIRS:]
    without, with_ = (np.array([row[i] for row in rows]) for i in (0, 1))
    base, extra = np.median(without, axis=0), np.median(with_ - without, axis=0)
    quiet, quiet_with = (np.quantile(one, 0.25, axis=0) for one in (without, with_))
    strays = np.median(np.abs(with_ - without - extra), axis=0)
    return {
        "model": model,
        "form": form,
        "backend": backend,
        "pairs": pairs,
        "steps_per_block": block,
        "bare_thread_cpu_ms": base[1] * 1e3,
        "extra_thread_cpu_ms": extra[1] * 1e3,
        "overhead_thread_cpu": extra[1] / base[1],
        "overhead_process_cpu": extra[2] / base[2],
        "overhead_wall": extra[0] / base[0],
        "quiet_extra_thread_cpu_ms": (quiet_with - quiet)[1] * 1e3,
        "overhead_quiet": (quiet_with - quiet)[1] / quiet[1],
        "noise": 1.86 * strays[1] / pairs**0.5 / base[1],
        "compiled_again": again,
    }


def as_markdown(result):
    rows = [
        [
            *(row["model"], row["form"], row["backend"]),
            *(f"{row['bare_thread_cpu_ms']:.2f}", f"{row['quiet_extra_thread_cpu_ms'] * 1e3:.0f}"),
            *(f"{row['overhead_quiet']:+.1%}", f"±{row['noise']:.1%}"),
            *(f"{row[f'overhead_{name}']:+.1%}" for name in ("thread_cpu", "process_cpu", "wall")),
            *("yes" if row["compiled_again"] else "no", verdict(row)),
        ]
        for row in result["rows"]
    ]
    return "\n".join(
        [
            "# What steps that are not saved cost a compiled model\n",
            f"{described(result['machine'])} One thread.",
            loads(result),
            "Blocks of compiled steps of one model with and without capture take turns, in pairs. Judged is",
            "the CPU time of the training thread in the quietest quarter of blocks; noise is the error of",
            "the median difference of a pair, and the last three columns are such medians. Losses wait 50 ms",
            "to be written together, so where a busy machine makes a step take that long, each is written",
            "alone and costs more than on a quiet one. Target: 2 %; open where the noise forbids to tell.\n",
            *table(
                [
                    *(
                        "model",
                        "given",
                        "backend",
                        "bare step ms",
                        "extra us",
                        "overhead",
                        "noise",
                    ),
                    *("thread CPU", "process CPU", "wall", "compiled again", "target"),
                ],
                rows,
            ),
            "",
        ]
    )


def verdict(row):
    if row["overhead_quiet"] <= TARGET:
        return "met"
    return "missed" if row["overhead_quiet"] - row["noise"] > TARGET else "open"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--forms", default="", help="by default all, of the largest model two")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--pairs", type=int, default=0, help="by default it depends on the model")
    parser.add_argument("--out", type=Path, default=RESULTS / "compiled")
    options = parser.parse_args()
    keep_memory()
    result = {"machine": machine("torch"), "rows": []}
    for model in options.models.split(","):
        for form in options.forms.split(",") if options.forms else FEW_FORMS.get(model, FORMS):
            row = measure(model, form, options.backend, options.pairs or PAIRS[model])
            result["rows"].append(row)
            print(
                f"{model:4} {form:9} bare {row['bare_thread_cpu_ms']:8.2f} ms  extra"
                f" {row['quiet_extra_thread_cpu_ms'] * 1e3:6.0f} us  {row['overhead_quiet']:+.1%}"
                f" ±{row['noise']:.1%}  {verdict(row)}",
                flush=True,
            )
    publish(result, options.out, as_markdown)


if __name__ == "__main__":
    main()
