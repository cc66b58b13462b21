"""What the rule runner costs, and how long it takes from a write to a finding.

``python benchmarks/rules.py [--steps 10000] [--seconds 30]`` writes ``results/rules.json`` and
``results/rules.md``.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import psutil
from machine import described, loads, machine, publish

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rules.made import Made, kind_of

from tdbg_lab.records import Finding, Kind, Mode, StatsRows, TensorKey
from tdbg_lab.rules import Needs, Rule, RunView, check_run, launch, resolve_rules
from tdbg_lab.store import read_findings, read_rule_states
from tdbg_lab.testing import block_of

RESULTS = Path(__file__).parent / "results"
LAYERS = 125


@dataclass(frozen=True, kw_only=True)
class Marked(Rule):
    """Finds a step whose loss is above one: what the latency is measured with."""

    def needs(self) -> Needs:
        return Needs(kinds=(Kind.LOSS,))

    def check(self, step: int, run: RunView) -> Finding | None:
        return self.finding(step, "marked") if run.scalars("loss/x").values[-1] > 1 else None


def network(variants: int = 8) -> list[StatsRows]:
    """500 tensors: weights, gradients and activations of 125 layers, and a number for each; some versions."""
    random = np.random.default_rng(0)
    rows = []
    keys: tuple[TensorKey, ...] = ()
    for _ in range(variants):
        tensors = {}
        for n in range(LAYERS):
            tensors[f"l{n}.weight"] = random.normal(size=(16, 16))
            tensors[f"gradient/l{n}.weight"] = random.normal(size=(16, 16))
            tensors[f"activation/relu{n}"] = np.maximum(0, random.normal(size=(32, 16)))
            tensors[f"optimizer/update_ratio/l{n}.weight"] = np.array(1e-3)
        keys = keys or tuple(_key(name, value) for name, value in tensors.items())
        axes = [1 if key.kind is Kind.ACTIVATION else None for key in keys]
        block = block_of(list(tensors.values()), axes)
        rows.append(StatsRows(0, Mode.TRAIN, 0, time.time_ns(), keys, block))
    return rows


def _key(name: str, value: np.ndarray) -> TensorKey:
    module = name.rpartition("/")[2].removesuffix(".weight")
    return TensorKey(name, kind_of(name), module=module, shape=value.shape)


def check_cost(steps: int) -> dict[str, Any]:
    """CPU time to check a run of 500 tensors after the fact, reading included."""
    rows = network()
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder) / "run", seal=True)
        for step in range(steps):
            made.writers[0].append(replace(rows[step % len(rows)], step=step, time_ns=time.time_ns()))
            made.step(step, {"loss/x": 2.0 * 0.5 ** (1000 * step / steps / 100) + random.normal(0, 0.01)})
        made.end()
        begun = time.process_time()
        found, states = check_run(made.path)
        used = time.process_time() - begun
    slowest = sorted(states, key=lambda state: -state.cost_ms)[:5]
    return {
        "tensors": 4 * LAYERS,
        "steps": steps,
        "rules": len(states),
        "findings": len(found),
        "cpu_s": round(used, 1),
        "cpu_ms_per_step": round(1e3 * used / steps, 2),
        "rules_ms_per_step": round(sum(state.cost_ms for state in states) / steps, 2),
        "slowest_ms_per_step": {state.rule: round(state.cost_ms / steps, 3) for state in slowest},
        "errors": {state.rule: state.reason for state in states if str(state.status) == "error"},
    }


def live(seconds: float) -> dict[str, float]:
    """A run that writes 500 tensors ten times a second, followed by a real runner.

    What the runner uses of one core, and the time from the return of a write to the finding on disk.
    """
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
        used, begun_all = 0.0, time.monotonic()
        for step in range(round(10 * seconds)):
            if step == 20:  # imports and first looks are over
                used, begun_all = _cpu_s(runner), time.monotonic()
            marked = step % 10 == 9
            made.writers[0].append(replace(rows[step % len(rows)], step=step, time_ns=time.time_ns()))
            made.step(step, {"loss/x": 1.5 if marked else 0.5})
            begun = time.monotonic()
            if marked:
                wanted = len(delays) + 1
                while sum(one.rule == "marked" for one in read_findings(made.path)) < wanted:
                    time.sleep(0.005)
                delays.append(time.monotonic() - begun)
            time.sleep(max(0.0, 0.1 - (time.monotonic() - begun)))
        share = (_cpu_s(runner) - used) / (time.monotonic() - begun_all)
        memory = runner.memory_info().rss
        made.end()
        process.wait(60)
    return {
        "steps_per_second": 10,
        "core_percent": round(100 * share, 1),
        "findings": len(delays),
        "p50_ms": round(1e3 * statistics.median(delays)),
        "p95_ms": round(1e3 * float(np.quantile(delays, 0.95))),
        "runner_memory_mb": round(memory / 2**20),
    }


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--steps", type=int, default=10_000, help="steps of the run that is checked after the fact"
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="length of the live run")
    options = parser.parse_args()
    result: dict[str, Any] = {
        "machine": machine("numpy", "pyarrow"),
        "check": check_cost(options.steps),
        "live": live(options.seconds),
    }
    print(publish(result, RESULTS / "rules", report))


def report(result: dict[str, Any]) -> str:
    check, follow = result["check"], result["live"]
    slowest = ", ".join(f"{name} {cost} ms" for name, cost in check["slowest_ms_per_step"].items())
    return (
        "# What the rules cost\n\n"
        f"{described(result['machine'])} {loads(result)} The runner is a process of its own.\n\n"
        "| what | measured |\n|---|---|\n"
        f"| {check['rules']} default rules over {check['tensors']} tensors x {check['steps']:,} steps after "
        f"the fact, reading included | {check['cpu_s']} s CPU ({check['cpu_ms_per_step']} ms a step, "
        f"{check['rules_ms_per_step']} ms of it in the rules) |\n"
        f"| the most expensive rules, a step | {slowest} |\n"
        f"| live, {follow['steps_per_second']} steps a second of that size | "
        f"{follow['core_percent']} % of one core |\n"
        f"| from a write to the finding on disk, p50 / p95 | {follow['p50_ms']} / {follow['p95_ms']} ms |\n"
        f"| memory of the runner | {follow['runner_memory_mb']} MiB |\n"
    )


if __name__ == "__main__":
    main()
