"""How fully processor and GPUs are used: box plots, and whether the GPUs have equal work."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.moments import at_same_moments
from tdbg_lab.rules.profile.load_balancing import distance
from tdbg_lab.views.labels import count, number, safe
from tdbg_lab.views.machines import gpu_words, machine_names, named
from tdbg_lab.views.palette import pick
from tdbg_lab.views.param import Param
from tdbg_lab.views.recent import RANGE, WINDOW, Range, range_words, recent_series
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import describe, empty, new_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from plotly import graph_objects as go

    from tdbg_lab.run import Run
    from tdbg_lab.store.series import SampleSeries

__all__ = ["gpu_sentences", "utilisation_view"]

_METRICS = {"cpu": "CPU", "gpu": "", "gpu_memory": "memory"}
_MOST = 64
_EDGES = np.arange(0.0, 101.0, 2.0)
_APART = 0.5
"""Distance from which SageMaker Debugger's rule LoadBalancing speaks."""
_SWING = 50.0
"""Points of percent between p5 and p95 from which a GPU goes up and down."""


@view(
    "utilisation",
    title="Utilisation",
    description="How fully processor, GPUs and GPU memory are used, and whether the GPUs have equal work.",
    params=(
        Param(
            "show",
            "Show",
            "choice",
            "boxes",
            choices=("boxes", "balance"),
            choice_labels=("Box plots", "Balance of GPUs"),
        ),
        WINDOW,
        RANGE,
    ),
)
def utilisation_view(
    run: Run,
    *,
    show: str = "boxes",
    window_s: int = 1800,
    range: Range = None,  # noqa: A002 - its name on the wire
) -> go.Figure:
    """A box for each device: quartiles, whiskers at p5 and p95; or the loads of the GPUs over one another."""
    series = _series(run, window_s, range)
    if not series:
        return empty(
            "The machine was not sampled yet.",
            "It is sampled by attach(..., profiler=True), the default; that takes about a second.",
        )
    if show == "balance":
        return _balance(run, {name: one for (metric, name), one in series.items() if metric == "gpu"}, range)
    words = [*gpu_sentences(series), *filter(None, [_no_gpu(run, series)])]
    figure = new_figure([_box(metric, name, one) for (metric, name), one in series.items()])
    figure.update_layout(
        yaxis={"title": {"text": "Utilisation (%)"}, "range": [0, 103]},
        xaxis={"type": "category"},
        showlegend=False,
    )
    return describe(figure, range_words(range) + " ".join(words), x_axes=())


def gpu_sentences(series: Mapping[tuple[str, str], SampleSeries]) -> list[str]:
    """What stands out of each device, in a sentence."""
    words = []
    for (metric, name), one in series.items():
        if metric == "gpu_memory":
            continue
        low, high = (float(each) for each in np.percentile(one.value, (5, 95)))
        text = f"{name}: at most {number(float(one.value.max()), 3)}%, p95 {number(high, 3)}%, p5 "
        text += f"{number(low, 3)}%"
        if metric == "gpu" and float(one.value.max()) == 0:
            text += ", not used"
        elif metric == "gpu" and high - low > _SWING:
            text += ", fluctuating"
        words.append(f"{text}.")
    return words[:_MOST]


def _series(run: Run, window_s: int, wanted: Range) -> dict[tuple[str, str], SampleSeries]:
    """By metric and device in words; of the processor only the whole."""
    machines = machine_names(run)
    found = {}
    series = recent_series(run, window_s, tuple(_METRICS), wanted)
    for one in sorted(series, key=lambda one: list(_METRICS).index(one.metric)):
        if one.rank in machines and (one.metric != "cpu" or one.device == "cpu"):
            device = "CPU" if one.metric == "cpu" else f"{one.device} {_METRICS[one.metric]}".strip()
            found[one.metric, named(device, machines[one.rank])] = one
    return dict(list(found.items())[: 3 * _MOST])


def _no_gpu(run: Run, series: Mapping[tuple[str, str], SampleSeries]) -> str:
    """A word on GPUs where none was sampled."""
    if any(metric == "gpu" for metric, _ in series):
        return ""
    return gpu_words(run) or "No GPU was sampled."


def _box(metric: str, name: str, series: SampleSeries) -> dict[str, Any]:
    """Five numbers instead of all samples."""
    p5, p25, p50, p75, p95 = ([float(each)] for each in np.percentile(series.value, (5, 25, 50, 75, 95)))
    return {
        "type": "box",
        "x": [safe(name)],
        "name": safe(name),
        "lowerfence": p5,
        "q1": p25,
        "median": p50,
        "q3": p75,
        "upperfence": p95,
        "mean": [float(series.value.mean())],
        "marker": {"color": pick(list(_METRICS).index(metric))},
    }


def _balance(run: Run, gpus: Mapping[str, SampleSeries], wanted: Range) -> go.Figure:
    """Histograms over one another, and how far the GPUs are apart."""
    if len(gpus) < 2:
        why = gpu_words(run) or f"The run has {count(len(gpus), 'GPU')}."
        return empty("Balance needs two GPUs or more.", why)
    names = list(gpus)[:_MOST]
    _, values = at_same_moments([(gpus[name].time_ns, gpus[name].value) for name in names])
    if not values.size:
        values = np.zeros((len(names), 1))
    figure = new_figure(
        [_histogram(name, row, index) for index, (name, row) in enumerate(zip(names, values, strict=True))],
        barmode="overlay",
        bargap=0,
    )
    figure.update_layout(
        xaxis={"title": {"text": "Utilisation (%)"}, "range": [0, 100]},
        yaxis={"title": {"text": "Share of the time (%)"}, "rangemode": "tozero"},
    )
    return describe(figure, range_words(wanted) + _distance_words(names, values), x_axes=())


def _histogram(name: str, values: NDArray[np.float64], index: int) -> dict[str, Any]:
    counts, _ = np.histogram(np.clip(values, 0, 100), _EDGES)
    return {
        "type": "bar",
        "x": (_EDGES[:-1] + _EDGES[1:]) / 2,
        "y": 100 * counts / max(len(values), 1),
        "width": 2,
        "name": safe(name),
        "opacity": 0.55,
        "marker": {"color": pick(index), "line": {"width": 0}},
        "hovertemplate": f"{safe(name)}: <b>%{{y:.3~g}}%</b> of the time at about %{{x:.0f}}%<extra></extra>",
    }


def _distance_words(names: Sequence[str], values: NDArray[np.float64]) -> str:
    """The pair of GPUs that are loaded most differently."""
    pairs = list(combinations(range(min(len(names), 16)), 2))
    away, a, b = max((distance(values[a], values[b]), a, b) for a, b in pairs)
    mean = values.mean(axis=1)
    text = (
        f"{names[a]} and {names[b]} are the furthest apart: {number(float(mean[a]), 3)}% and "
        f"{number(float(mean[b]), 3)}% on average, a distance of {away:.2f} of at most 0.83"
    )
    return f"{text}: the work is not spread evenly." if away > _APART else f"{text}."
