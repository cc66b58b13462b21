"""A run in plain words: what stands out, what to do next, and the tables behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.analysis.phases import exclusive_ns, step_times, training_spans
from tdbg_lab.records import Kind, Mode, Severity
from tdbg_lab.views.data_loading import loading_verdict, waiting
from tdbg_lab.views.html_page import Table
from tdbg_lab.views.labels import count, number, percent
from tdbg_lab.views.ranks import exchange

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.run import Run

__all__ = ["finding_table", "next_steps", "part_table", "usage_table", "verdicts"]

_ALL_S = 31_536_000
_MOST_FINDINGS = 50
_MOST_STEPS = 8
_BUSY, _IDLE = 70.0, 10.0
_METRICS = (
    ("cpu", "CPU", "%"),
    ("gpu", "GPU", "%"),
    ("memory", "Memory", "%"),
    ("gpu_memory", "GPU memory", "%"),
    ("swap", "Swap", "%"),
    ("iowait", "I/O wait", "%"),
    ("disk_read", "Disk read", "MB/s"),
    ("disk_write", "Disk write", "MB/s"),
    ("net_recv", "Network in", "MB/s"),
    ("net_sent", "Network out", "MB/s"),
)
_WORST_FIRST = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.NOTICE: 2}


def verdicts(run: Run) -> list[str]:
    """What stands out, one sentence each, the most important first."""
    return [*_finding_words(run), *_loss_words(run), *_time_words(run), *_load_words(run)]


def next_steps(run: Run) -> list[str]:
    """What to do next: the first advice of each rule that found something, the worst first."""
    advice: dict[str, str] = {}
    for one in _findings(run):
        if one.advice:
            advice.setdefault(one.rule, one.advice[0])
    steps = list(dict.fromkeys(advice.values()))[:_MOST_STEPS]
    if not steps:
        steps = ["No rule found anything: go on, and compare the next run with this one."]
    if not run.rule_states():
        steps.append("No rules watched this run: attach(..., rules='default') does, or run tdbg rules on it.")
    if not run.profiles():
        steps.append("To see operators and Python functions, profile some steps: handle.profile(steps=5).")
    return steps


def finding_table(run: Run) -> Table:
    """Findings, the worst first."""
    found = _findings(run)
    rows = [
        (str(one.severity), one.rule, _steps(one), one.message, " ".join(one.advice[:2]))
        for one in found[:_MOST_FINDINGS]
    ]
    if len(found) > _MOST_FINDINGS:
        rows.append(("", "", "", f"and {len(found) - _MOST_FINDINGS} more", ""))
    return Table(rows, ("Severity", "Rule", "Steps", "Finding", "Advice"))


def part_table(run: Run) -> Table:
    """Initialisation, training loop and finalisation: how long, and their share."""
    spans = training_spans(run.spans())
    info = run.info
    end = info.ended_ns or run.last_time_ns
    if not len(spans) or end is None or not info.created_ns:
        return Table(())
    first = int(spans["start_ns"].min())
    last = int((spans["start_ns"] + spans["duration_ns"]).max())
    whole = max(end - info.created_ns, 1)
    parts = (
        ("Initialisation", first - info.created_ns),
        ("Training loop", last - first),
        ("Finalisation", end - last),
    )
    rows = [
        (name, _time(max(time, 0) / 1e9), percent(min(max(time, 0) / whole, 1.0))) for name, time in parts
    ]
    return Table([*rows, ("All", _time(whole / 1e9), "")], ("Part", "Time", "Share"))


def usage_table(run: Run) -> Table:
    """Load of the machine: the mean over devices at each instant, by its percentiles."""
    samples = run.samples()
    if not len(samples):
        return Table(())
    metric, device = samples["metric"].astype(str), samples["device"].astype(str)
    rows = []
    for name, words, unit in _METRICS:
        own = (metric == name) & ((device == "cpu") if name == "cpu" else True)
        values = samples.loc[own].groupby(["time_ns", "rank"])["value"].mean().to_numpy()
        if len(values):
            shown = np.percentile(values, (100, 99, 95, 50, 0))
            scale = 1e6 if unit == "MB/s" else 1.0  # rates are recorded in bytes a second
            rows.append((f"{words} ({unit})", *(number(float(each) / scale, 3) for each in shown)))
    return Table(rows, ("Load", "max", "p99", "p95", "p50", "min"))


def _findings(run: Run) -> list[Finding]:
    muted = set(run.info.muted)
    found = [one for one in run.findings() if one.rule not in muted]
    return sorted(found, key=lambda one: (_WORST_FIRST.get(one.severity, 3), one.step_first))


def _finding_words(run: Run) -> list[str]:
    found = _findings(run)
    states = run.rule_states()
    if not found:
        return [f"{count(len(states), 'rule')} watched the run and found nothing."] if states else []
    worst = found[0]
    counts = [
        f"{sum(one.severity is severity for one in found)} {severity}"
        for severity in _WORST_FIRST
        if any(one.severity is severity for one in found)
    ]
    return [f"{count(len(found), 'finding')} ({', '.join(counts)}); the first to look at: {worst.message}"]


def _loss_words(run: Run) -> list[str]:
    words = []
    for name in run.tensor_names(kind=Kind.LOSS, mode=Mode.TRAIN)[:2]:
        series = run.scalars(name, mode=Mode.TRAIN)
        values = series.values
        bad = int((~np.isfinite(values)).sum())
        good = values[np.isfinite(values)]
        if bad:
            words.append(f"{name} is not finite at {count(bad, 'step')}: training is lost from there on.")
        if len(good) >= 4:
            part = max(len(good) // 10, 1)
            first, last = float(good[:part].mean()), float(good[-part:].mean())
            way = "fell" if last < first else "did not fall: it went"
            least = number(float(good.min()))
            words.append(f"{name} {way} from {number(first)} to {number(last)}; its least is {least}.")
    return words


def _time_words(run: Run) -> list[str]:
    spans = training_spans(run.spans())
    if not len(spans):
        return []
    words = [loading_verdict(run, found, _ALL_S)] if len((found := waiting(spans)).step) else []
    times = step_times(spans)
    slow = times.outliers(3)
    if slow.any():
        ms = times.duration_s * 1e3
        words.append(
            f"{count(int(slow.sum()), 'step')} of {len(ms):,} took far longer than the others, up to "
            f"{number(float(ms.max()), 3)} ms; the median is {number(float(np.median(ms)), 3)} ms."
        )
    if len(run.ranks()) > 1:
        frame = spans.assign(phase=spans["phase"].astype(str), time=exclusive_ns(spans) / 1e9)
        straggler = exchange(frame[(frame["phase"] != "eval").to_numpy()]).straggler
        if straggler is not None:
            words.append(f"Rank {straggler} is slower than the others, which wait for it in every step.")
    return words


def _load_words(run: Run) -> list[str]:
    samples = run.samples(metrics=("cpu", "gpu"))
    if not len(samples):
        return []
    metric, device = samples["metric"].astype(str), samples["device"].astype(str)
    cpu = samples.loc[(metric == "cpu") & (device == "cpu"), "value"]
    gpu = samples.loc[metric == "gpu", "value"]
    busy_cpu = float(np.percentile(cpu, 95)) if len(cpu) else 0.0
    if not len(gpu):
        return [f"No GPU was sampled; the processor was at {number(busy_cpu, 3)}% or below 95% of the time."]
    busy = float(np.percentile(gpu, 95))
    if float(gpu.max()) == 0:
        return ["The GPU was not used at all: move model and batches to it."]
    if busy < _BUSY and busy_cpu < _BUSY:
        return [f"GPU ({number(busy, 3)}% at p95) and CPU have room: a larger batch would use them."]
    if busy < _BUSY:
        return [
            f"The GPU is at {number(busy, 3)}% (p95) while the CPU is busy: the CPU probably holds it up."
        ]
    if float(np.percentile(gpu, 5)) < _IDLE:
        return ["The GPU goes up and down between idle and busy: look for what it waits for in the timeline."]
    return [f"The GPU is well used: {number(float(np.median(gpu)), 3)}% in the median."]


def _steps(finding: Finding) -> str:
    first, last = finding.step_first, finding.step_last
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.1f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
