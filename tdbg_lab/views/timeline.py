"""Where the time goes: phases of training and the machine's load on one time axis."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.downsample import evenly, min_max
from tdbg_lab.analysis.spans import merge_narrow, side_by_side
from tdbg_lab.records import RunStatus
from tdbg_lab.views.common import STEP, points
from tdbg_lab.views.finding_marks import finding_marks
from tdbg_lab.views.labels import count, duration, number, percent, safe
from tdbg_lab.views.machines import gpu_words, machine_names, named
from tdbg_lab.views.palette import MUTED, PHASES, faded, pick
from tdbg_lab.views.param import Param
from tdbg_lab.views.recent import RANGE, Range, end_ns, zero_ns
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import describe, empty, new_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from pandas import DataFrame
    from plotly import graph_objects as go

    from tdbg_lab.analysis.spans import Bars
    from tdbg_lab.run import Run
    from tdbg_lab.store.series import SampleSeries

__all__ = ["timeline"]

_FIRST_PHASES = tuple(PHASES)
_GROUPS = {
    "usage": ("Load", ("cpu", "memory", "gpu", "gpu_memory", "iowait", "swap"), "%"),
    "process": ("Training process", ("process_cpu",), "%"),
    "bytes": ("Memory", ("memory_bytes", "process_memory_bytes", "gpu_memory_bytes"), "B"),
    "io": ("Input and output", ("disk_read", "disk_write", "net_recv", "net_sent"), "B/s"),
    "gpu": ("GPU", ("gpu_power_w", "gpu_temperature_c"), ""),
    "links": (
        "GPU links",
        ("gpu_pcie_recv", "gpu_pcie_sent", "gpu_nvlink_recv", "gpu_nvlink_sent"),
        "B/s",
    ),
    "clocks": ("GPU clocks", ("gpu_clock_mhz", "gpu_memory_clock_mhz"), "MHz"),
}
_WORDS = {
    "cpu": "CPU",
    "memory": "memory",
    "gpu": "GPU",
    "gpu_memory": "GPU memory",
    "iowait": "I/O wait",
    "swap": "swap",
    "process_cpu": "process CPU",
    "memory_bytes": "memory",
    "process_memory_bytes": "process memory",
    "gpu_memory_bytes": "GPU memory",
    "disk_read": "disk read",
    "disk_write": "disk write",
    "net_recv": "network in",
    "net_sent": "network out",
    "gpu_power_w": "power (W)",
    "gpu_temperature_c": "temperature (\N{DEGREE SIGN}C)",
    "gpu_pcie_recv": "PCIe in",
    "gpu_pcie_sent": "PCIe out",
    "gpu_nvlink_recv": "NVLink in",
    "gpu_nvlink_sent": "NVLink out",
    "gpu_clock_mhz": "processor clock",
    "gpu_memory_clock_mhz": "memory clock",
}
_TOLD = ("suspended_s", "clock_jump_s", "gpu_silent")
"""Metrics that are not drawn: they are said."""
_DASHES = ("solid", "dash", "dot", "dashdot")
_MOST_TRACKS = 16
_HALF = 0.36
"""Half the height of a bar; rows are 1 apart."""
_MOST_LINES = 24
_NS = 1e9
_LIVE_S = 60
"""What is shown of a run that is live when nothing else is asked for."""
_UNSAMPLED_S = 90.0
"""From when on it is said that samples are missing: longer than the longest time between two."""
_LONGEST_NS = 300 * 10**9
"""How long before the picture a span that reaches into it may begin."""


@view(
    "timeline",
    title="Timeline",
    description="Phases of training and the load of CPU, GPU and memory on one time axis.",
    axis="time",
    params=(
        Param(
            "window_s",
            "Window",
            "int",
            minimum=1,
            maximum=31_536_000,
            help="Seconds back from the latest record. Default: the last minute of a live run, else all.",
        ),
        RANGE,
        Param(
            "metrics",
            "Machine",
            "choice",
            "usage",
            choices=("usage", "process", "bytes", "io", "gpu", "links", "clocks", "all", "none"),
            choice_labels=(
                "Load",
                "Process",
                "Memory in bytes",
                "Disk and network",
                "GPU power",
                "GPU links",
                "GPU clocks",
                "All",
                "None",
            ),
        ),
        STEP,
        points(600, 4000),
    ),
)
def timeline(
    run: Run,
    *,
    window_s: int | None = None,
    range: Range = None,  # noqa: A002 - its name on the wire
    metrics: str = "usage",
    step: int | None = None,
    n_out: int = 600,
) -> go.Figure:
    """Bars of phases in tracks, marks of steps, and lines of samples; all share the x axis."""
    zero = zero_ns(run)
    bounds = _bounds(run, zero, window_s, range)
    if bounds is None:
        return empty(
            "Nothing was profiled yet.",
            "Phases and load are recorded by attach(..., profiler=True), which is the default; "
            "the first samples come within a second.",
        )
    low, high = bounds
    start, end = zero + int(low * _NS), zero + int(high * _NS)
    spans = run.spans(start_ns=start - _LONGEST_NS, end_ns=end)
    spans = spans[spans["start_ns"] + spans["duration_ns"] >= start]  # those that reach into the picture
    spans = spans.assign(phase=spans["phase"].astype("category"))  # millions of names, a few different ones
    asked = [name for name in (_GROUPS if metrics == "all" else (metrics,)) if name in _GROUPS]
    wanted = {"cpu", "gpu", *_TOLD, *(metric for name in asked for metric in _GROUPS[name][1])}
    samples = _by_device(run, run.sample_series(sorted(wanted), start_ns=start, end_ns=end))
    steps, seconds = _steps(run, zero, low, high)
    tracks, phases = _tracks(spans, zero, (high - low) / n_out)
    marks = _step_marks(steps, seconds) + finding_marks(run, zero, (low, high))
    present = {metric for metric, _ in samples}
    groups = [name for name in asked if present & set(_GROUPS[name][1])]
    traces = [*tracks, *marks]
    for row, name in enumerate(groups):
        traces += _lines(samples, name, zero, n_out, f"y{row + 2}")
    if not traces:
        return empty("Nothing happened in this time.", "Widen the window, or move the range.")
    rows = list(dict.fromkeys([*phases, *(str(mark["y"][0]) for mark in marks)]))
    _place(rows, [*tracks, *marks])
    figure = _draw(traces, rows, groups, (low, high))
    _mark_step(figure, steps, seconds, step)
    kept = evenly(len(steps), 300)
    return describe(
        figure,
        " ".join(filter(None, [_caption(spans, samples, low, high), _gpu_words(run, samples, asked)])),
        step=step,
        time_zero_ns=str(zero),
        step_seconds=[[int(steps[i]), round(float(seconds[i]), 4)] for i in kept],
    )


def _bounds(run: Run, zero: int, window_s: int | None, wanted: Range) -> tuple[float, float] | None:
    """First and last second shown, or None when there is nothing at all."""
    if wanted is not None and wanted[0] is not None and wanted[1] is not None:
        return float(wanted[0]), max(float(wanted[1]), wanted[0] + 1e-3)
    latest = end_ns(run)
    if latest is None:
        return None
    end = (latest - zero) / _NS
    if window_s is None:
        window_s = _LIVE_S if run.status is RunStatus.RUNNING else math.ceil(end)
    first, last = wanted if wanted is not None else (max(0.0, end - window_s), end)
    low = 0.0 if first is None else float(first)
    high = end if last is None else float(last)
    return low, max(high, low + 1e-3)


def _steps(run: Run, zero: int, low: float, high: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Saved steps in sight and when they were written, seconds."""
    steps, times = run.step_times()
    seconds = (np.asarray(times, dtype=np.int64) - zero) / _NS
    inside = (seconds >= low) & (seconds <= high)
    return np.asarray(steps, dtype=np.int64)[inside], seconds[inside]


def _tracks(spans: DataFrame, zero: int, pixel: float) -> tuple[list[dict[str, Any]], list[str]]:
    """Bars of each phase, and the names of the tracks from top to bottom."""
    if not len(spans):
        return [], []
    found = [str(each) for each in spans["phase"].unique()]
    phase = spans["phase"].cat.codes.to_numpy()
    code = {str(each): index for index, each in enumerate(spans["phase"].cat.categories)}
    order = [each for each in _FIRST_PHASES if each in found] + [
        each for each in found if each not in _FIRST_PHASES
    ]
    begin = (np.asarray(spans["start_ns"], dtype=np.int64) - zero) / _NS
    length = np.asarray(spans["duration_ns"], dtype=np.float64) / _NS
    step = np.asarray(spans["step"], dtype=np.int64)
    traces = []
    for index, each in enumerate(order[:_MOST_TRACKS]):
        rows = np.flatnonzero(phase == code[each])
        bars = merge_narrow(begin[rows], length[rows], step[rows], pixel)
        traces.append(_track(safe(each), bars, pixel, PHASES.get(each) or pick(index)))
    return traces, [safe(each) for each in order[:_MOST_TRACKS]]


def _track(name: str, bars: Bars, pixel: float, colour: str) -> dict[str, Any]:
    """The bars of one phase, the fuller the stronger.

    A heat map of one row: the browser draws it as a single image, however many bars there are.
    """
    edges, shown = side_by_side(bars, pixel)
    gap = shown < 0
    share = np.clip(bars.busy / np.maximum(bars.length, 1e-12), 0, 1)
    words = np.array([*_words(bars), ""], dtype=object)
    return {
        "type": "heatmap",
        "x": edges,
        "y": [name],
        "yaxis": "y",
        "z": np.where(gap, np.nan, share[shown]).astype(np.float32)[None],
        "zmin": 0,
        "zmax": 1,
        "zsmooth": False,
        "showscale": False,
        "colorscale": [[0, faded(colour, 0.25)], [1, faded(colour, 1)]],
        "name": name,
        "customdata": np.where(gap, np.nan, 1e3 * bars.busy[shown]).astype(np.float32)[None],
        "text": [words[shown].tolist()],
        "hoverongaps": False,
        "hovertemplate": f"<b>{name}</b>, %{{text}}<extra></extra>",
    }


def _words(bars: Bars) -> list[str]:
    """What is said of each bar: its steps, how much of it is busy, and where it begins."""
    return [
        f"{which}<br>{busy:.4g} ms of {length:.4g} ms<br>from {start:.3f} s"
        for which, busy, length, start in zip(
            _which_steps(bars),
            (1e3 * bars.busy).tolist(),
            (1e3 * bars.length).tolist(),
            bars.start.tolist(),
            strict=True,
        )
    ]


def _which_steps(bars: Bars) -> list[str]:
    """How many spans a bar stands for, and of which steps."""
    answer = []
    for spans, first, last in zip(
        bars.spans.tolist(), bars.step_first.tolist(), bars.step_last.tolist(), strict=True
    ):
        steps = f"step {first:,}" if first == last else f"steps {max(first, 0):,} to {last:,}"
        which = steps if last >= 0 else "no step"
        answer.append(which if spans == 1 else f"{count(spans, 'span')}, {which}")
    return answer


def _step_marks(steps: NDArray[np.int64], seconds: NDArray[np.float64]) -> list[dict[str, Any]]:
    if not len(steps):
        return []
    kept = evenly(len(steps), 120)
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": seconds[kept],
            "y": ["step"] * len(kept),
            "yaxis": "y",
            "customdata": steps[kept],
            "name": "saved step",
            "showlegend": False,
            "marker": {"symbol": "line-ns", "size": 11, "line": {"width": 1.4, "color": MUTED}},
            "hovertemplate": "step %{customdata:,d} saved at %{x:.2f} s<extra></extra>",
        }
    ]


_Samples = dict[tuple[str, str], "tuple[NDArray[np.int64], NDArray[np.float64]]"]
"""Time and values by metric and device."""


def _by_device(run: Run, series: Sequence[SampleSeries]) -> _Samples:
    """Devices of each machine, processes of each rank; of cores only the mean: single ones hide the rest."""
    machines = machine_names(run)
    several = len({one.rank for one in series}) > 1
    found: _Samples = {}
    for one in series:
        if one.device == "process":
            device = named(one.device, f"rank {one.rank}" if several else "")
        elif one.rank in machines and (one.metric != "cpu" or one.device == "cpu"):
            device = named(one.device, machines[one.rank])
        else:
            continue
        found[one.metric, device] = one.time_ns, one.value
    return found


def _lines(samples: _Samples, group: str, zero: int, n_out: int, yaxis: str) -> list[dict[str, Any]]:
    """Lines of one group of metrics: a colour for each metric, a line style for each device."""
    _, wanted, unit = _GROUPS[group]
    traces: list[dict[str, Any]] = []
    for name in wanted:
        for index, each in enumerate(device for metric, device in samples if metric == name):
            time_ns, value = samples[name, each]
            when = (time_ns - zero) / _NS
            at = min_max(value, max(n_out, 4), x=when)
            shown = each if name.startswith("gpu") else each.partition(" ")[2]
            which = f" {safe(shown)}" if shown else ""
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines" if len(at) > 1 else "markers",
                    "x": when[at],
                    "y": value[at],
                    "yaxis": yaxis,
                    "name": f"{_WORDS[name]}{which}",
                    "line": {
                        "color": pick(wanted.index(name) + (len(group) % 3)),
                        "width": 1.8,
                        "dash": _DASHES[index % 4],
                    },
                    "hovertemplate": f"{_WORDS[name]}{which} <b>%{{y:.3~s}}{unit}</b>"
                    " at %{x:.1f} s<extra></extra>",
                }
            )
    return traces[:_MOST_LINES]


def _place(rows: Sequence[str], traces: Sequence[dict[str, Any]]) -> None:
    """Where the rows stand, in place of their names: a heat map has no room of its own beside a category."""
    places = {name: len(rows) - 1 - index for index, name in enumerate(rows)}
    for trace in traces:
        at = [places[name] for name in trace["y"]]
        trace["y"] = [at[0] - _HALF, at[0] + _HALF] if trace["type"] == "heatmap" else at


def _draw(
    traces: Sequence[dict[str, Any]],
    tracks: Sequence[str],
    groups: Sequence[str],
    bounds: tuple[float, float],
) -> go.Figure:
    top = max(1.0, 0.28 * len(tracks)) if tracks else 0.25
    return new_figure(
        traces,
        heights=[top, *[1.2] * len(groups)],
        xaxis={"title": {"text": "Time since start (s)"}, "range": list(bounds), "tickformat": "~g"},
        yaxis={
            "tickmode": "array",
            "tickvals": list(range(len(tracks)))[::-1],
            "ticktext": list(tracks),
            "zeroline": False,
            "range": [-0.6, max(len(tracks), 1) - 0.4],
            "showgrid": False,
            "fixedrange": True,
            "visible": bool(tracks),
        },
        margin={"t": 34},
        legend={"y": 1.0},
        **_value_axes(groups),
    )


def _value_axes(groups: Sequence[str]) -> dict[str, Any]:
    """The y axis of each group of metrics, by its name in the layout."""
    axes: dict[str, Any] = {}
    for row, name in enumerate(groups):
        title, _, unit = _GROUPS[name]
        axis: dict[str, Any] = {
            "title": {"text": f"{title} ({unit})" if unit else title},
            "rangemode": "tozero",
            "fixedrange": True,
        }
        if name == "usage":
            axis["range"] = [0, 103]
        if unit.startswith("B"):
            axis["tickformat"] = "~s"
        axes[f"yaxis{row + 2}"] = axis
    return axes


def _mark_step(
    figure: go.Figure, steps: NDArray[np.int64], seconds: NDArray[np.float64], step: int | None
) -> None:
    """A line where the shared step was saved (the axis is time, so hosts cannot place it)."""
    if step is None or not len(steps) or not int(steps.min()) <= step <= int(steps.max()):
        return
    at = float(seconds[int(np.abs(steps - step).argmin())])
    figure.add_shape(
        type="line",
        xref="x",
        yref="paper",
        x0=at,
        x1=at,
        y0=0,
        y1=1,
        line={"color": MUTED, "width": 1.5, "dash": "dash"},
    )


def _caption(spans: DataFrame, samples: _Samples, low: float, high: float) -> str:
    """Shares of the phases, and the mean load."""
    words = []
    if len(spans):
        busy = spans.groupby("phase", observed=True)["duration_ns"].sum().sort_values(ascending=False)
        whole = float(busy.sum()) or 1.0
        words.append(
            ", ".join(f"{name} {percent(float(each) / whole)}" for name, each in busy.head(4).items())
        )
    words += [*_clock_words(samples), *_end_words(spans, samples)]
    loads = [float(values.mean()) for (metric, _), (_, values) in samples.items() if metric == "cpu"]
    if loads:
        words.append(f"CPU {number(float(np.mean(loads)), 3)}% on average")
    shown = f"{number(high - low, 3)} s up to {_clock(high)}"
    return f"{shown}: {'; '.join(words)}." if words else f"{shown}; {count(len(spans), 'span')}."


def _clock_words(samples: _Samples) -> list[str]:
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


def _end_words(spans: DataFrame, samples: _Samples) -> list[str]:
    """A word where training goes on and the samples do not: their process was ended."""
    last = max((int(times[-1]) for times, _ in samples.values() if len(times)), default=None)
    if last is None or not len(spans):
        return []
    missing_s = (int((spans["start_ns"] + spans["duration_ns"]).max()) - last) / _NS
    if missing_s < _UNSAMPLED_S:
        return []
    return [f"the machine was no longer sampled in the last {duration(missing_s)}: its sampler has ended"]


def _gpu_words(run: Run, samples: _Samples, asked: Sequence[str]) -> str:
    """What is to be said about GPUs that are not in the picture."""
    if not {"usage", "gpu"} & set(asked):
        return ""
    silent = sorted({device for metric, device in samples if metric == "gpu_silent"})
    if silent:
        return f"{', '.join(silent[:8])} did not answer for some of the time."
    return "" if any(metric == "gpu" for metric, _ in samples) else gpu_words(run)


def _clock(seconds: float) -> str:
    moment = datetime.fromtimestamp(max(seconds, 0), tz=UTC)
    return moment.strftime("%H:%M:%S" if seconds >= 3600 else "%M:%S") + " after the start"
