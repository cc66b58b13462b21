"""What is said below a timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.views.labels import count, duration, number, percent, safe
from tdbg_lab.views.load_lines import by_device
from tdbg_lab.views.machines import gpu_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandas import DataFrame

    from tdbg_lab.run import Run
    from tdbg_lab.store.series import SampleSeries
    from tdbg_lab.views.load_lines import LoadSamples

__all__ = ["TOLD", "timeline_words"]

TOLD = ("suspended_s", "clock_jump_s", "gpu_silent")
"""Metrics that are not drawn: they are said."""
_LEAST_UNSAMPLED_S = 10.0
"""From when on it is said that samples are missing, or one and a half of the time between two of them."""
_LONGEST_INTERVAL_S = 60.0
_MOST_HOSTS = 4
_NS = 1e9


def timeline_words(
    run: Run,
    spans: DataFrame,
    series: Sequence[SampleSeries],
    *,
    bounds: tuple[float, float],
    asked: Sequence[str],
) -> str:
    """Shares of the phases, the mean load, and what makes the picture look odd.

    Parameters
    ----------
    series
        What is drawn of the machines, and `TOLD`.
    bounds
        First and last second in sight.
    asked
        Groups of metrics that are drawn.
    """
    samples = by_device(run, series)
    ended = _end_words(run, spans, series)
    parts = (_caption(spans, samples, bounds, ended), _offset_words(run), _gpu_words(run, samples, asked))
    return " ".join(filter(None, parts))


def _caption(
    spans: DataFrame, samples: LoadSamples, bounds: tuple[float, float], ended: Sequence[str]
) -> str:
    """Shares of the phases, and the mean load."""
    low, high = bounds
    words = []
    if len(spans):
        busy = spans.groupby("phase", observed=True)["duration_ns"].sum().sort_values(ascending=False)
        whole = float(busy.sum()) or 1.0
        words.append(
            ", ".join(f"{name} {percent(float(each) / whole)}" for name, each in busy.head(4).items())
        )
    words += [*_clock_words(samples), *ended]
    loads = [float(values.mean()) for (metric, _), (_, values) in samples.items() if metric == "cpu"]
    if loads:
        words.append(f"CPU {number(float(np.mean(loads)), 3)}% on average")
    shown = f"{number(high - low, 3)} s up to {_clock(high)}"
    return f"{shown}: {'; '.join(words)}." if words else f"{shown}; {count(len(spans), 'span')}."


def _clock_words(samples: LoadSamples) -> list[str]:
    """What makes times look odd: a machine that slept, a clock that was set."""
    slept, jumped = (
        np.concatenate([np.empty(0), *(each for (name, _), (_, each) in samples.items() if name == metric)])
        for metric in ("suspended_s", "clock_jump_s")
    )
    words = [f"the machine was suspended for {duration(float(slept.sum()))}"] if len(slept) else []
    words += [
        f"the clock was set {'forward' if one > 0 else 'back'} by {duration(abs(one))}"
        for one in jumped[:3].tolist()
    ]
    return words


def _end_words(run: Run, spans: DataFrame, series: Sequence[SampleSeries]) -> list[str]:
    """A word where training goes on and the samples do not: their process was ended."""
    last: dict[int, int] = {}
    for one in series:
        if len(one.time_ns):
            last[one.rank] = max(last.get(one.rank, 0), int(one.time_ns[-1]))
    intervals = {one.rank: one.interval_s for one in run.machines()}
    ends = (spans["start_ns"] + spans["duration_ns"]).to_numpy()
    ranks = spans["rank"].to_numpy()
    missing: dict[int, float] = {}
    for rank, sampled_ns in last.items():
        own = ends[ranks == rank]
        missing_s = (int(own.max()) - sampled_ns) / _NS if len(own) else 0.0
        if missing_s >= max(_LEAST_UNSAMPLED_S, 1.5 * intervals.get(rank, _LONGEST_INTERVAL_S)):
            missing[rank] = missing_s
    if not missing:
        return []
    worst = max(missing, key=missing.__getitem__)
    what = f"the machine of rank {worst}" if len(last) > 1 else "the machine"
    return [f"{what} was no longer sampled in the last {duration(missing[worst])}: its sampler has ended"]


def _offset_words(run: Run) -> str:
    """A sentence where the clocks of the machines differ: their times are shown as if they did not."""
    offsets = run.clock_offsets()
    if not offsets:
        return ""
    told = (
        f"{safe(host)} is {duration(abs(ahead_s))} {'ahead' if ahead_s > 0 else 'behind'}"
        for host, ahead_s in sorted(offsets.items())[:_MOST_HOSTS]
    )
    return f"Clocks of the machines differ: that of {', that of '.join(told)}; times are shown without it."


def _gpu_words(run: Run, samples: LoadSamples, asked: Sequence[str]) -> str:
    """What is to be said about GPUs that are not in the picture."""
    if not {"usage", "gpu"} & set(asked):
        return ""
    silent = sorted({device for metric, device in samples if metric == "gpu_silent"})
    if silent:
        return f"{', '.join(silent[:8])} did not answer for some of the time."
    return "" if any(metric == "gpu" for metric, _ in samples) else gpu_words(run)


def _clock(seconds: float) -> str:
    minutes, second = divmod(int(max(seconds, 0)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    words = f"{count(days, 'day')} " if days else ""
    return f"{words}{f'{hour:02}:' if hours else ''}{minute:02}:{second:02} after the start"
