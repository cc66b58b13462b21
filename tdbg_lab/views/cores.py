"""Load of every core and GPU over time, as a heat map."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.views.common import points
from tdbg_lab.views.labels import count, number, safe
from tdbg_lab.views.machines import gpu_words, machine_names
from tdbg_lab.views.palette import SEQUENTIAL, gamma
from tdbg_lab.views.recent import RANGE, WINDOW, Range, recent_samples, zero_ns
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import colour_bar, describe, empty, new_figure, time_axis

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame
    from plotly import graph_objects as go

    from tdbg_lab.run import Run

__all__ = ["cores_view"]

_MOST_ROWS = 256
_NUMBER = re.compile(r"(\d+)$")
_IDLE, _FULL = 10.0, 90.0


@view(
    "cores",
    title="Cores and GPUs",
    description="Load of each processor core and each GPU over time.",
    axis="time",
    params=(WINDOW, RANGE, points(400, 2000)),
)
def cores_view(
    run: Run,
    *,
    window_s: int = 1800,
    range: Range = None,  # noqa: A002 - its name on the wire
    n_out: int = 400,
) -> go.Figure:
    """One row for each device, colour is its load in percent."""
    samples = recent_samples(run, window_s, ("cpu", "gpu"), range)
    device = samples["device"].astype(str)
    machines = machine_names(run)
    samples = samples[((device != "cpu") & samples["rank"].isin(list(machines))).to_numpy()]
    if not len(samples):
        return empty(
            "No core was sampled yet.",
            "The machine is sampled by attach(..., profiler=True), the default; that takes about a second.",
        )
    zero = zero_ns(run)
    rows, seconds, load = _grid(samples, machines, zero, n_out)
    trace = {
        "type": "heatmap",
        "x": seconds,
        "y": [safe(row) for row in rows],
        "z": load.astype(np.float32),
        "zmin": 0,
        "zmax": 100,
        "colorscale": gamma(SEQUENTIAL, 1.0),
        "colorbar": colour_bar("Load (%)"),
        "hovertemplate": "%{y} at %{x:.1f} s: <b>%{z:.0f}%</b><extra></extra>",
    }
    figure = new_figure([trace])
    figure.update_layout(
        xaxis=time_axis(),
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False, "fixedrange": True},
        margin={"t": 24},
    )
    words = [_caption(rows, load)]
    if not any(row.startswith("gpu") for row in rows):
        words.append(gpu_words(run))
    return describe(figure, " ".join(filter(None, words)), time_zero_ns=str(zero))


def _grid(
    samples: DataFrame, machines: dict[int, str], zero: int, n_out: int
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Devices, middles of the cells in s, and mean loads, shape ``(D, T)``; NaN where there is none."""
    ranks = samples["rank"].to_numpy(dtype=np.int64)
    device = samples["device"].to_numpy(dtype=np.str_)
    if len(machines) > 1:
        of = np.array([f" of {machines[rank]}" for rank in ranks.tolist()], dtype=np.str_)
        device = np.char.add(device, of)
    names, row = np.unique(device, return_inverse=True)
    order = sorted(range(len(names)), key=lambda i: _place(str(names[i])))[:_MOST_ROWS]
    when = (samples["time_ns"].to_numpy(dtype=np.int64) - zero) / 1e9
    low, high = float(when.min()), float(when.max())
    cells = int(min(n_out, max(len(np.unique(when)), 1)))
    width = max(high - low, 1e-3) / cells
    column = np.minimum(((when - low) / width).astype(np.int64), cells - 1)
    place = row * cells + column
    size = len(names) * cells
    total = np.bincount(place, weights=samples["value"].to_numpy(dtype=np.float64), minlength=size)
    n = np.bincount(place, minlength=size)
    with np.errstate(invalid="ignore"):
        load = (total / np.where(n, n, np.nan)).reshape(len(names), cells)
    seconds = np.asarray(low + (np.arange(cells) + 0.5) * width, dtype=np.float64)
    return [str(names[i]) for i in order], seconds, load[order]


def _place(name: str) -> tuple[int, str, int]:
    """GPUs first, then cores, by number."""
    device, _, machine = name.partition(" of ")
    number_ = _NUMBER.search(device)
    return (0 if device.startswith("gpu") else 1, machine.rjust(64), int(number_[1]) if number_ else -1)


def _caption(rows: list[str], load: NDArray[np.float64]) -> str:
    mean = np.nanmean(load, axis=1)
    words = []
    for kind, word in (("gpu", "GPU"), ("cpu", "core")):
        own = np.array([row.startswith(kind) for row in rows])
        if not own.any():
            continue
        idle, full = int((mean[own] < _IDLE).sum()), int((mean[own] > _FULL).sum())
        text = f"{count(int(own.sum()), word)} at {number(float(mean[own].mean()), 3)}% on average"
        words.append(text + (f", {idle} idle" if idle else "") + (f", {full} at their limit" if full else ""))
    return "; ".join(words) + "."
