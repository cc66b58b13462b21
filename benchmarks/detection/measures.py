"""From alarms to numbers: recall, false alarms, steps to detection, right layer or cause, damage."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.detection.catalog import tasks
from benchmarks.detection.faults.names import rules_for
from benchmarks.detection.judging import SETS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.detection.program import Fault, Program

__all__ = ["Measure", "Verdict", "damage", "measure", "verdict"]

HALF_OF = {task.name: task.half for task in tasks()}


@dataclass(frozen=True)
class Verdict:
    """What one detector made of one faulty run."""

    any_alarm: bool
    """Some alarm after the trigger."""
    found: bool
    """An alarm of a rule that fits, after the trigger."""
    steps: int | None
    """From the trigger to the first of them."""
    right: bool
    """One of the alarms that fit names the layer, or where none is at fault, the cause."""
    early: tuple[str, ...]
    """Rules that alarmed before the trigger: false."""


def verdict(fault: Fault, alarms: list[dict[str, Any]], *, ours: bool) -> Verdict:
    """Judge the alarms on a faulty run. The names of other tools' diagnoses are not held to ours."""
    after = [one for one in alarms if one["step"] >= fault.trigger]
    fitting = [one for one in after if one["rule"] in rules_for(fault.rules)] if ours else after
    right = [one for one in fitting if _right(fault, one)] if ours else []
    early = tuple(sorted({one["rule"] for one in alarms if one["step"] < fault.trigger}))
    steps = min((one["step"] for one in fitting), default=None)
    return Verdict(
        bool(after), bool(fitting), None if steps is None else steps - fault.trigger, bool(right), early
    )


def _right(fault: Fault, alarm: dict[str, Any]) -> bool:
    if fault.where:
        named = (alarm["module"], alarm["tensor"], alarm["message"])
        return any(re.search(fault.where, text) for text in named if text)
    return alarm["rule"] in rules_for(fault.causes or fault.rules)


def damage(outcomes: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Scores of each faulty program and of its healthy twin, by the name of the program."""
    scores: dict[str, dict[int, float]] = defaultdict(dict)
    for one in outcomes:
        scores[one["program"]][one["seed"]] = one["score"]
    found = {}
    for name in sorted(scores):
        if "!" not in name:
            continue
        twin = scores.get(name.split("!")[0], {})
        seeds = sorted(set(scores[name]) & set(twin))
        if seeds:
            losses = [twin[seed] - scores[name][seed] for seed in seeds]
            found[name] = {
                "healthy": round(median(twin[seed] for seed in seeds), 4),
                "faulty": round(median(scores[name][seed] for seed in seeds), 4),
                "worse_in_seeds": sum(loss > 0.005 for loss in losses),
                "seeds": len(seeds),
                "hurts": median(losses) > 0.01,
            }
    return found


@dataclass
class Measure:
    """Numbers of one detector over some runs."""

    faulty: int = 0
    found: int = 0
    any_alarm: int = 0
    right: int = 0
    healthy: int = 0
    alarmed: int = 0
    """Healthy runs with an alarm."""
    alarms: int = 0
    """Alarms on healthy runs."""
    early: int = 0
    """Faulty runs with an alarm before the trigger."""
    steps: list[int] = field(default_factory=list)
    silent_steps: list[int] = field(default_factory=list)
    silent: int = 0
    faults: dict[str, list[Verdict]] = field(default_factory=lambda: defaultdict(list))
    """What was made of each kind of fault."""
    rules: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    missed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        """As JSON."""
        quick = sum(step <= 5 for step in self.silent_steps)
        return {
            "faulty_runs": self.faulty,
            "recall": _share(self.found, self.faulty),
            "recall_any_alarm": _share(self.any_alarm, self.faulty),
            "right_layer_or_cause": _share(self.right, self.found),
            "healthy_runs": self.healthy,
            "healthy_runs_with_alarm": _share(self.alarmed, self.healthy),
            "alarms_per_healthy_run": _share(self.alarms, self.healthy),
            "early_alarms": self.early,
            "steps_to_detection_median": median(self.steps) if self.steps else None,
            "silent_runs": self.silent,
            "silent_recall": _share(len(self.silent_steps), self.silent),
            "silent_within_5_steps": _share(quick, self.silent),
            "silent_steps_median": median(self.silent_steps) if self.silent_steps else None,
            "rules": {name: dict(counts) for name, counts in sorted(self.rules.items())},
            "faults": {name: _told(verdicts) for name, verdicts in sorted(self.faults.items())},
            "missed": sorted(self.missed),
            "false_alarms": sorted(self.false),
        }


def _told(verdicts: list[Verdict]) -> dict[str, Any]:
    steps = [one.steps for one in verdicts if one.steps is not None]
    return {
        "runs": len(verdicts),
        "found": sum(one.found for one in verdicts),
        "right": sum(one.right for one in verdicts),
        "steps_median": median(steps) if steps else None,
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def measure(outcomes: list[dict[str, Any]], known: dict[str, Program], half: str, name: str) -> Measure:
    """Numbers of one set of detectors over one half (or all, for ``""``)."""
    total = Measure()
    for one in outcomes:
        program = known[one["program"]]
        if (half and HALF_OF[program.task.name] != half) or name not in one["sets"]:
            continue
        alarms = one["sets"][name]["alarms"]
        label = f"{one['program']} {one['seed']}"
        if program.fault is None:
            _healthy(total, alarms, label)
        else:
            _faulty(total, program.fault, alarms, label, ours=SETS.index(name) < 2)
    return total


def _healthy(total: Measure, alarms: list[dict[str, Any]], label: str) -> None:
    total.healthy += 1
    names = {one["rule"] for one in alarms}
    total.alarmed += bool(names)
    total.alarms += len(names)
    for rule in names:
        total.rules[rule]["false_alarms"] += 1
    if names:
        total.false.append(f"{label}: {', '.join(sorted(names))}")


def _faulty(total: Measure, fault: Fault, alarms: list[dict[str, Any]], label: str, *, ours: bool) -> None:
    told = verdict(fault, alarms, ours=ours)
    total.faults[fault.name].append(told)
    total.faulty += 1
    total.found += told.found
    total.any_alarm += told.any_alarm
    total.right += told.right
    total.early += bool(told.early)
    if told.steps is not None:
        total.steps.append(told.steps)
    if fault.group == "silent":
        total.silent += 1
        if told.steps is not None:
            total.silent_steps.append(told.steps)
    for rule in {one["rule"] for one in alarms if one["step"] >= fault.trigger}:
        fits = rule in rules_for(fault.rules)
        total.rules[rule]["found" if fits or not ours else "beside"] += 1
    for rule in told.early:
        total.rules[rule]["early"] += 1
    if not told.found:
        others = ", ".join(sorted({one["rule"] for one in alarms})) or "nothing"
        total.missed.append(f"{label}: {others}")
