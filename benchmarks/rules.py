"""What the rule runner costs, and how long it takes from a write to a finding.

``python benchmarks/rules.py`` writes ``results/rules.json`` and ``results/rules.md``.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import cloudpickle
import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rules.made import Made, kind_of

from tdbg_lab.records import Finding, Kind, Mode, StatsRows, TensorKey
from tdbg_lab.rules import Needs, Rule, RunView, check_run, launch, resolve_rules
from tdbg_lab.store import read_findings, read_rule_states
from tdbg_lab.testing import block_of

RESULTS = Path(__file__).parent / "results"
LAYERS = 125
STEPS = 100


@dataclass(frozen=True, kw_only=True)
class Marked(Rule):
    """Finds a step whose loss is above one: what the latency is measured with."""

    def needs(self) -> Needs:
        return Needs(kinds=(Kind.LOSS,))

    def check(self, step: int, run: RunView) -> Finding | None:
        return self.finding(step, "marked") if run.scalars("loss/x").values[-1] > 1 else None


def network() -> StatsRows:
    """500 tensors: weights, gradients and activations of 125 layers, and a number for each."""
    random = np.random.default_rng(0)
    tensors = {}
    for n in range(LAYERS):
        tensors[f"l{n}.weight"] = random.normal(size=(16, 16))
        tensors[f"gradient/l{n}.weight"] = random.normal(size=(16, 16))
        tensors[f"activation/relu{n}"] = np.maximum(0, random.normal(size=(32, 16)))
        tensors[f"optimizer/update_ratio/l{n}.weight"] = np.array(1e-3)
    keys = tuple(TensorKey(name, kind_of(name), shape=value.shape) for name, value in tensors.items())
    axes = [1 if key.kind is Kind.ACTIVATION else None for key in keys]
    return StatsRows(0, Mode.TRAIN, 0, time.time_ns(), keys, block_of(list(tensors.values()), axes))


def check_cost() -> dict[str, float]:
    """CPU time a recorded step of 500 tensors costs the runner, reading included."""
    rows = network()
    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder) / "run")
        for step in range(STEPS):
            made.writers[0].append(replace(rows, step=step))
            made.step(step, {"loss/x": 2.0 * 0.98**step})
        begun = time.process_time()
        found, states = check_run(made.path)
        used = time.process_time() - begun
    assert not found
    return {
        "tensors": 4 * LAYERS,
        "cpu_ms_per_step": round(1e3 * used / STEPS, 2),
        "rules_ms_per_step": round(sum(state.cost_ms for state in states) / STEPS, 2),
    }


def latency() -> dict[str, float]:
    """Seconds from the return of a write to a finding on disk, through a real runner, 500 tensors a step."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    rows = network()
    delays: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder) / "run")
        process = launch(made.path, [*resolve_rules("default"), Marked()])
        assert process is not None
        while not read_rule_states(made.path):
            time.sleep(0.05)
        runner = psutil.Process(process.pid)
        for step in range(120):
            marked = step % 10 == 9
            made.writers[0].append(replace(rows, step=step))
            made.step(step, {"loss/x": 1.5 if marked else 0.5})
            begun = time.monotonic()
            if marked:
                wanted = len(delays) + 1
                while sum(one.rule == "marked" for one in read_findings(made.path)) < wanted:
                    time.sleep(0.005)
                delays.append(time.monotonic() - begun)
            time.sleep(max(0.0, 0.05 - (time.monotonic() - begun)))
        memory = runner.memory_info().rss
        made.end()
        process.wait(60)
    return {
        "findings": len(delays),
        "p50_ms": round(1e3 * statistics.median(delays)),
        "p95_ms": round(1e3 * float(np.quantile(delays, 0.95))),
        "runner_memory_mb": round(memory / 2**20),
    }


def main() -> None:
    load = os.getloadavg()[0]
    result = {
        "machine": f"{platform.machine()}, {psutil.cpu_count()} cores, Python {platform.python_version()}",
        "load_average": round(load, 1),
        "check": check_cost(),
        "latency": latency(),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "rules.json").write_text(json.dumps(result, indent=2) + "\n")
    check, delay = result["check"], result["latency"]
    text = (
        "# What the rules cost\n\n"
        f"{result['machine']}, load average {result['load_average']}; the runner is a process of its own.\n\n"
        "| what | measured |\n|---|---|\n"
        f"| a recorded step of {check['tensors']} tensors, default rules, reading included | "
        f"{check['cpu_ms_per_step']} ms CPU |\n"
        f"| from a write to the finding on disk, 20 steps a second of that size, p50 / p95 | "
        f"{delay['p50_ms']} / {delay['p95_ms']} ms |\n"
        f"| memory of the runner | {delay['runner_memory_mb']} MiB |\n"
    )
    (RESULTS / "rules.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
