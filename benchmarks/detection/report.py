"""Write what was measured: ``results/detection.json`` and ``results/detection.md``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.detection.catalog import HELD_OUT, SETS_OF_PROGRAMS, find, programs
from benchmarks.detection.judging import DEFAULT_SET, SETS
from benchmarks.detection.measures import HALF_OF, damage, measure

__all__ = ["details", "write"]

RESULTS = Path(__file__).parents[1] / "results"
TITLES = {
    "default": "tdbg-lab, default",
    "classic": "tdbg-lab, classic (SageMaker Debugger's documented conditions)",
    "autotrainer": "AUTOTRAINER thresholds",
    "deepdiagnosis": "DeepDiagnosis thresholds",
    "umlaut": "UMLAUT thresholds",
}
NOTES = ("Data, networks, losses and schedules held out are new to the rules; most kinds of faults are not.",)
"""What has to be said about the figures."""
MENDED: tuple[str, ...] = ()
"""What was changed after the rules were asked: the figures are those from before."""
COMMAND = "    python -m benchmarks.detection --keep FOLDER"
COLUMNS = (
    ("recall", "found"),
    ("recall_any_alarm", "any alarm"),
    ("right_layer_or_cause", "right layer or cause"),
    ("healthy_runs_with_alarm", "healthy runs with an alarm"),
    ("alarms_per_healthy_run", "alarms per healthy run"),
    ("steps_to_detection_median", "steps to detection, median"),
    ("silent_within_5_steps", "silent errors within 5 steps"),
)


def details(found: list[dict[str, Any]], sets: tuple[str, ...], *, blind: bool) -> str:
    """For tuning: every miss and every false alarm. `blind` gives the totals only."""
    known = {one.name: one for one in programs()}
    known |= {name: find(name) for name in {one["program"] for one in found} - known.keys()}
    harm = damage(found)
    counted = _counted(found, known, harm)
    lines = []
    for name in sets:
        told = measure(counted, known, "", name).told()
        missed, false, rules = (told.pop(key) for key in ("missed", "false_alarms", "rules"))
        told.pop("faults")
        lines.append(f"== {name} {json.dumps(told)}")
        if not blind:
            lines += [f"  missed {one}" for one in missed] + [f"  FALSE {one}" for one in false]
            lines += [f"  rule {rule} {counts}" for rule, counts in rules.items()]
            lines += [f"  error {error}" for one in found for error in one["sets"][name]["errors"]]
    if not blind:
        for name, one in harm.items():
            fault = known[name].fault
            if not one["hurts"] and fault is not None and not fault.by_construction:
                lines.append(f"  NO HARM {name} {one}")
            elif not sets:
                lines.append(f"  harm {name} {one}")
    return "\n".join(lines)


def write(found: list[dict[str, Any]]) -> str:
    """Write both files; gives the text."""
    known = {one.name: one for one in programs()}
    harm = damage(found)
    counted = _counted(found, known, harm)
    left_out = sorted({one["program"] for one in found} - {one["program"] for one in counted})
    result: dict[str, Any] = {
        "seeds": {
            name: len({one["seed"] for one in found if _set(known, one) == name}) for name in SETS_OF_PROGRAMS
        },
        "programs": _numbers(counted, known),
        "declared": {name: len(programs(name)) for name in SETS_OF_PROGRAMS},
        "run": {
            name: len({one["program"] for one in found if _set(known, one) == name})
            for name in SETS_OF_PROGRAMS
        },
        "runs": {name: sum(_set(known, one) == name for one in found) for name in SETS_OF_PROGRAMS},
        "left_out_for_no_harm": left_out,
        "sets": {
            part: {
                name: measure(counted, known, part, name).told()
                for name in SETS
                if any(name in one["sets"] and _set(known, one) == part for one in counted)
            }
            for part in SETS_OF_PROGRAMS
        },
        "asked": _asked(found, known),
        "damage": harm,
        "cpu_s_of_trainings": round(sum(one["cpu_s"] for one in found)),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "detection.json").write_text(json.dumps(result, indent=1) + "\n")
    text = "\n".join(_lines(result)) + "\n"
    (RESULTS / "detection.md").write_text(text)
    return text


def _asked(found: list[dict[str, Any]], known: dict[str, Any]) -> dict[str, list[str]]:
    """Which states of the rules (hashes of their code) answered for each set of programs."""
    return {
        part: sorted(
            {
                one["sets"][DEFAULT_SET].get("code", "")[:12]
                for one in found
                if DEFAULT_SET in one["sets"] and _set(known, one) == part
            }
        )
        for part in SETS_OF_PROGRAMS
    }


def _set(known: dict[str, Any], outcome: dict[str, Any]) -> str:
    return HALF_OF[known[outcome["program"]].task.name]


def _counted(
    found: list[dict[str, Any]], known: dict[str, Any], harm: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Runs without a fault, and those whose fault does harm or is a silent error by construction."""
    return [one for one in found if _counts(known[one["program"]].fault, harm.get(one["program"]))]


def _counts(fault: Any, harm: dict[str, Any] | None) -> bool:
    return fault is None or fault.by_construction or (harm is not None and harm["hurts"])


def _numbers(found: list[dict[str, Any]], known: dict[str, Any]) -> dict[str, Any]:
    names = {one["program"] for one in found}
    faulty = [known[name] for name in names if known[name].fault is not None]
    return {
        "healthy": len(names) - len(faulty),
        "faulty": len(faulty),
        "by_group": dict(sorted(Counter(one.fault.group for one in faulty).items())),
        "by_family": dict(sorted(Counter(known[name].task.family for name in names).items())),
    }


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "-"
    if key.startswith("steps") or key == "alarms_per_healthy_run":
        return f"{value:g}" if key.startswith("steps") else f"{value:.2f}"
    return f"{100 * value:.1f} %"


def _table(half: dict[str, Any]) -> list[str]:
    lines = [
        "| detectors | faulty, healthy runs | " + " | ".join(title for _, title in COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 2) + "|",
    ]
    for name, told in half.items():
        cells = [
            "-" if name not in (DEFAULT_SET, "classic") and key in ("recall", "right_layer_or_cause")
            else _cell(key, told[key])
            for key, _ in COLUMNS
        ]  # fmt: skip
        lines.append(
            f"| {TITLES[name]} | {told['faulty_runs']}, {told['healthy_runs']} | " + " | ".join(cells) + " |"
        )
    return lines


def _rules(half: dict[str, Any]) -> list[str]:
    lines = [
        "| rule | faulty runs it finds | alarms beside the cause | before the trigger | on healthy runs |",
        "|---|---|---|---|---|",
    ]
    for rule, counts in half[DEFAULT_SET]["rules"].items():
        cells = [str(counts.get(key, 0)) for key in ("found", "beside", "early", "false_alarms")]
        lines.append(f"| {rule} | " + " | ".join(cells) + " |")
    return lines


def _faults(half: dict[str, Any]) -> list[str]:
    """One row a fault: what each set of detectors made of it."""
    others = [name for name in half if name != DEFAULT_SET]
    lines = [
        f"| {' | '.join(['fault', 'runs', 'found', 'right', 'steps, median', *others])} |",
        "|---" * (5 + len(others)) + "|",
    ]
    for fault, told in half[DEFAULT_SET]["faults"].items():
        steps = "-" if told["steps_median"] is None else f"{told['steps_median']:g}"
        cells = [fault, *(str(told[key]) for key in ("runs", "found", "right")), steps]
        cells += [str(half[one]["faults"].get(fault, {"found": "-"})["found"]) for one in others]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _goals(told: dict[str, Any]) -> list[str]:
    """Whether what was aimed at on the held-out programs is reached."""
    goals = (
        ("recall", 0.95, 1.0, "at least 95 % found"),
        ("healthy_runs_with_alarm", 0.0, 0.02, "at most 2 % of healthy runs with an alarm"),
        ("right_layer_or_cause", 0.8, 1.0, "at least 80 % of those found with the right layer or cause"),
        ("silent_within_5_steps", 1.0, 1.0, "all silent errors within 5 steps"),
    )
    return [
        f"- {text}: **{'reached' if low <= told[key] <= high else 'not reached'}** ({100 * told[key]:.1f} %)"
        for key, low, high, text in goals
        if told[key] is not None
    ]


def _lines(result: dict[str, Any]) -> list[str]:
    count = result["programs"]
    lines = [
        "# What the rules find, and what they should not",
        "",
        f"{count['faulty']} faulty and {count['healthy']} healthy small trainings, in several sets:",
        "",
    ]
    for part, one in SETS_OF_PROGRAMS.items():
        declared = result["declared"][part]
        run = (
            f"{result['run'][part]} of {declared} programs, {result['runs'][part]} of {declared * one.seeds} "
            f"runs with {one.seeds} seed(s)"
        )
        lines.append(f"- **{one.title}**: {one.purpose} {run}.")
    lines += [
        "",
        "The figures to go by are those of the held-out programs. To make this report:",
        "",
        COMMAND,
    ]
    lines += [f"\n{one}" for one in NOTES]
    if MENDED:
        lines += ["", "Mended since, with a test of its own each, without any change of these figures:", ""]
        lines += [f"- {one}" for one in MENDED]
    lines += [
        "",
        "- *Found*: an alarm (warning or critical), after the trigger, of a rule that fits the fault.",
        "- *Any alarm*: of whatever rule; names of other tools' diagnoses are not held to ours.",
        "- *Right*: of the runs found, those where a fitting alarm names the layer at fault, or the cause",
        "  where no layer is.",
        "",
        "A fault counts when it makes the final score worse than its healthy twin's (median over the seeds),",
        "or is a silent error by construction. The faults are declared in `benchmarks/detection/faults`.",
    ]
    held = result["sets"][HELD_OUT]
    if DEFAULT_SET in held:
        lines += ["", "Goals on the held-out programs, default set:", "", *_goals(held[DEFAULT_SET])]
    for part in SETS_OF_PROGRAMS:
        lines += _part(SETS_OF_PROGRAMS[part].title, result["sets"][part])
    for part in SETS_OF_PROGRAMS:
        if DEFAULT_SET in result["sets"][part]:
            lines += _details(SETS_OF_PROGRAMS[part].title, result["sets"][part], whole=part == HELD_OUT)
    lines += ["", "Faults left out since they did no harm: "
              + (", ".join(result["left_out_for_no_harm"]) or "none") + "."]  # fmt: skip
    return lines


def _part(title: str, told: dict[str, Any]) -> list[str]:
    """The table of a set of programs."""
    if DEFAULT_SET not in told:
        return ["", f"## {title}: not run"]
    ours = told[DEFAULT_SET]
    lines = ["", f"## {title}: {ours['faulty_runs']} faulty, {ours['healthy_runs']} healthy runs", ""]
    lines += _table(told)
    if len({one["faulty_runs"] + one["healthy_runs"] for one in told.values()}) > 1:
        lines += ["", "Rows of fewer runs were not finished: they are not of the same programs."]
    return lines


def _details(title: str, told: dict[str, Any], *, whole: bool) -> list[str]:
    """What was missed and what was a false alarm; with `whole`, fault by fault and rule by rule."""
    lines: list[str] = []
    name = title.lower()
    if whole:
        lines += ["", f"## Fault by fault, {name}", ""]
        lines += ["For other tools, any alarm after the trigger counts as found.", "", *_faults(told)]
        lines += ["", f"## Rule by rule, default set, {name}", "", *_rules(told)]
    lines += ["", f"## Missed, {name}", ""]
    lines += [f"- {one}" for one in told[DEFAULT_SET]["missed"]] or ["Nothing."]
    lines += ["", f"## False alarms, {name}", ""]
    return lines + ([f"- {one}" for one in told[DEFAULT_SET]["false_alarms"]] or ["None."])
