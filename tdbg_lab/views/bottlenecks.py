"""How often a GPU waits while processor or disks are at their limit, and what training did then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.moments import at_same_moments
from tdbg_lab.analysis.phases import training_spans
from tdbg_lab.views.labels import percent, safe
from tdbg_lab.views.machines import gpu_words, machine_names
from tdbg_lab.views.palette import ACCENT, MUTED, SERIES, phase_colours
from tdbg_lab.views.param import Param
from tdbg_lab.views.recent import RANGE, WINDOW, Range, range_words, recent_series, recent_spans
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import describe, empty, new_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from pandas import DataFrame
    from plotly import graph_objects as go

    from tdbg_lab.run import Run

__all__ = ["bottleneck_view"]

_GPU_WAITS = 10.0
_LIMIT = {"cpu": 90.0, "io": 50.0}
"""Percent above which a core, or the waiting for disks, is at its limit: as in SageMaker Debugger's rules."""
_OTHER = {"cpu": "a core is at its limit", "io": "the disks are waited for"}
_MOST_MOMENTS = 200_000


@view(
    "bottlenecks",
    title="Bottlenecks",
    description="How often a GPU waits while processor or disks are at their limit, and in which phases.",
    params=(
        Param(
            "show",
            "Show",
            "choice",
            "cpu",
            choices=("cpu", "io"),
            choice_labels=("Processor", "Input and output"),
        ),
        WINDOW,
        RANGE,
    ),
)
def bottleneck_view(
    run: Run,
    *,
    show: str = "cpu",
    window_s: int = 1800,
    range: Range = None,  # noqa: A002 - its name on the wire
) -> go.Figure:
    """Shares of the time; and of the moments at which both hold, the phases of training."""
    time_ns, gpu, other = _moments(run, show, window_s, range)
    if not len(time_ns):
        why = gpu_words(run) or "A GPU is sampled where NVML finds one."
        return empty("No GPU was sampled beside the processor.", why)
    waits = gpu < _GPU_WAITS
    both = waits & (other > _LIMIT[show])
    shares = [float((~waits).mean()), float((waits & ~both).mean()), float(both.mean())]
    names = ["GPU at work", "GPU waits", f"GPU waits while {_OTHER[show]}"]
    phases = _phases_at(run, time_ns[both], window_s, range)
    figure = new_figure([_pie(names, shares, [SERIES[2], MUTED, ACCENT], 0), *_phase_pie(phases)])
    return describe(figure, range_words(range) + _caption(shares, show, phases), x_axes=())


def _moments(
    run: Run, show: str, window_s: int, wanted: Range
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Moments, load of the least busy GPU, and of the busiest core or the waiting for disks; percent."""
    metric = "cpu" if show == "cpu" else "iowait"
    found: list[tuple[NDArray[np.int64], ...]] = []
    series = recent_series(run, window_s, ("gpu", metric), wanted)
    for rank in machine_names(run):
        gpus = [one for one in series if one.rank == rank and one.metric == "gpu"]
        others = [
            one
            for one in series
            if one.rank == rank and one.metric == metric and (show == "io" or one.device != "cpu")
        ]
        if gpus and others:
            time_ns, values = at_same_moments([(one.time_ns, one.value) for one in [*gpus, *others]])
            found.append((time_ns, values[: len(gpus)].min(axis=0), values[len(gpus) :].max(axis=0)))
    if not found:
        none = np.empty(0)
        return np.empty(0, np.int64), none, none
    time_ns, gpu, other = (np.concatenate(column) for column in zip(*found, strict=True))
    return time_ns, gpu, other


def _phases_at(run: Run, moments: NDArray[np.int64], window_s: int, wanted: Range) -> dict[str, int]:
    """At how many of these moments training was in which phase, most often first."""
    spans: DataFrame = training_spans(recent_spans(run, window_s, wanted))
    if not len(moments) or not len(spans):
        return {}
    start = spans["start_ns"].to_numpy(dtype=np.int64)
    order = np.argsort(start, kind="stable")
    end = (start + spans["duration_ns"].to_numpy(dtype=np.int64))[order]
    row = np.searchsorted(start[order], moments[:_MOST_MOMENTS], side="right") - 1
    inside = (row >= 0) & (moments[:_MOST_MOMENTS] <= end[np.maximum(row, 0)])
    phases = spans["phase"].astype(str).to_numpy()[order][row[inside]]
    names, counts = np.unique(phases, return_counts=True)
    most = np.argsort(-counts, kind="stable")
    return {str(names[at]): int(counts[at]) for at in most}


def _phase_pie(phases: dict[str, int]) -> list[dict[str, Any]]:
    names = list(phases)
    return [_pie(names, list(phases.values()), phase_colours(names), 1)] if phases else []


def _pie(
    names: Sequence[str], values: Sequence[float], colours: Sequence[str], column: int
) -> dict[str, Any]:
    return {
        "type": "pie",
        "labels": [safe(name) for name in names],
        "values": list(values),
        "domain": {"x": [0.0, 0.46] if column == 0 else [0.54, 1.0]},
        "marker": {"colors": list(colours)},
        "hole": 0.45,
        "sort": False,
        "direction": "clockwise",
        "textinfo": "label+percent",
        "hovertemplate": "%{label}: <b>%{percent}</b><extra></extra>",
        "showlegend": False,
    }


def _caption(shares: Sequence[float], show: str, phases: dict[str, int]) -> str:
    text = (
        f"A GPU is below {_GPU_WAITS:g}% in {percent(shares[1] + shares[2])} of the time; in "
        f"{percent(shares[2])} of it {_OTHER[show]}"
    )
    if not phases:
        return f"{text}."
    whole = sum(phases.values())
    told = ", ".join(f"{name} {percent(times / whole)}" for name, times in list(phases.items())[:4])
    return f"{text}, at the right in which phases: {told}."
