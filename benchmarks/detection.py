"""How often each rule finds its trouble, and how often it alarms on healthy trainings.

``python benchmarks/detection.py [SEEDS]`` trains small networks on scikit-learn's digits (the ones of
``tests/rules/nets.py``), with our settings and with the documented conditions of SageMaker Debugger
(``classic=True``); writes ``results/detection.json`` and ``results/detection.md``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rules"))

import nets

from tdbg_lab.actions import StopTraining
from tdbg_lab.rules import DeadRelu, ExplodingTensor, LossNotDecreasing, VanishingGradient, check_run

RESULTS = Path(__file__).parent / "results"
RULES = (ExplodingTensor, DeadRelu, VanishingGradient, LossNotDecreasing)
FAULTY = {
    "biases pushed down": ("dead_relu", nets.dead_relu),
    "learning rate 20": ("dead_relu", nets.dead_relu_by_rate),
    "eight sigmoid layers": ("vanishing_gradient", nets.vanishing),
    "square root of negatives": ("exploding_tensor", nets.exploding),
    "learning rate 10^6": ("exploding_tensor", nets.exploding_by_rate),
    "optimizer of another model": ("loss_not_decreasing", nets.stuck),
    "learning rate x 30": ("loss_not_decreasing", nets.diverging),
}
TROUBLE_BEGINS = {"biases pushed down": 40, "square root of negatives": 60, "learning rate x 30": 200}


def alarms(path: Path, *, classic: bool) -> dict[str, int]:
    """First step of each rule that alarms on a run."""
    first: dict[str, int] = {}
    # With an action attached a rule does not defer to the findings of others. None is performed here.
    rules = [rule(classic=classic, actions=StopTraining()) for rule in RULES]
    for finding in check_run(path, rules, strict=True)[0]:
        first.setdefault(finding.rule, finding.step_first)
    return first


def main(seeds: int) -> None:
    healthy: dict[str, dict[str, int]] = {"ours": defaultdict(int), "classic": defaultdict(int)}
    found: dict[str, dict[str, list[int]]] = {"ours": defaultdict(list), "classic": defaultdict(list)}
    runs = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(seeds):
            for name, train in nets.HEALTHY.items():
                torch.manual_seed(seed)
                path = train(Path(folder) / f"{name}-{seed}")
                runs += 1
                for setting in ("ours", "classic"):
                    seen = alarms(path, classic=setting == "classic")
                    for rule in seen:
                        healthy[setting][rule] += 1
                    healthy[setting]["any"] += bool(seen)
                    if seen and setting == "ours":
                        print("false alarm:", name, seed, seen, flush=True)
            for name, (rule, train) in FAULTY.items():
                torch.manual_seed(seed)
                path = train(Path(folder) / f"{train.__name__}-{seed}")
                for setting in ("ours", "classic"):
                    seen = alarms(path, classic=setting == "classic")
                    begins = TROUBLE_BEGINS.get(name, 0)
                    if rule in seen and seen[rule] >= begins:
                        found[setting][name].append(seen[rule] - begins)
                    elif setting == "ours":
                        print("missed:", name, seed, seen, flush=True)
            write(seed + 1, runs, healthy, found)


def write(seeds: int, runs: int, healthy: dict, found: dict) -> None:
    result = {"seeds": seeds, "healthy_runs": runs, "false_alarms": healthy, "steps_to_detection": found}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "detection.json").write_text(json.dumps(result, indent=2) + "\n")
    lines = [
        "# What the rules find, and what they should not",
        "",
        f"Digits, {len(nets.HEALTHY)} healthy and {len(FAULTY)} faulty trainings, {seeds} seeds. Classic:",
        "the documented conditions of SageMaker Debugger on the same data (`classic=True`).",
        "",
        f"| healthy runs with an alarm, of {runs} | ours | classic |",
        "|---|---|---|",
        *(
            f"| {name} | {healthy['ours'].get(name, 0)} | {healthy['classic'].get(name, 0)} |"
            for name in (*(rule.name for rule in RULES), "any")
        ),
        "",
        "| trouble (rule) | found, ours | steps until found, median | found, classic |",
        "|---|---|---|---|",
    ]
    for name, (rule, _) in FAULTY.items():
        ours, classic = sorted(found["ours"].get(name, [])), found["classic"].get(name, [])
        middle = ours[len(ours) // 2] if ours else "-"
        lines.append(f"| {name} ({rule}) | {len(ours)} of {seeds} | {middle} | {len(classic)} of {seeds} |")
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    (RESULTS / "detection.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
