"""All layers and all steps for one statistic: shows at a glance where gradients die or explode."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.downsample import spaced
from tdbg_lab.records import Kind
from tdbg_lab.views.columns import COLUMNS, Column
from tdbg_lab.views.common import MODE, REGEX, STEP, mode_of, points
from tdbg_lab.views.labels import KIND_TITLES, count, number, short_unique
from tdbg_lab.views.palette import BAD, DIVERGING, MUTED, SEQUENTIAL, ramp
from tdbg_lab.views.param import Param
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import colour_bar, describe, float32, new_figure, nothing_yet, step_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from plotly import graph_objects as go

    from tdbg_lab.records import Mode
    from tdbg_lab.run import Run

__all__ = ["overview"]

_KINDS = ("gradient", "weight", "activation", "bias", "input", "buffer", "custom")
_OFFERED = ("l2", "std", "mean_abs", "rms", "mean", "max", "min", "l1", "zero_share", "nan_share")
_CODES = 12
"""Colour codes below this are words, not values: no row, exactly zero, not finite (a third each)."""
_FAR = 1e300
"""Values beyond have the colour of this one: the span of the scale must not overflow."""
_MISSING, _ZERO, _BAD = 1, 5, 9


@dataclass(frozen=True, slots=True)
class _Table:
    """N tensors over S steps."""

    names: list[str]
    steps: NDArray[np.int64]
    values: NDArray[np.float64]
    """Shape ``(N, S)``, as the next two."""
    missing: NDArray[np.bool_]
    """The tensor has no row at this step."""
    bad: NDArray[np.bool_]
    """The tensor holds a NaN or an infinity."""
    saved: int
    """Saved steps, of which these are some."""

    def take(self, rows: list[int]) -> _Table:
        """Only these tensors."""
        names = [self.names[row] for row in rows]
        return _Table(names, self.steps, self.values[rows], self.missing[rows], self.bad[rows], self.saved)


@view(
    "overview",
    title="Overview of layers",
    description="One statistic of every layer at every step.",
    axis="step",
    params=(
        Param(
            "kind",
            "What",
            "choice",
            choices=_KINDS,
            choice_labels=tuple(KIND_TITLES[Kind(kind)].capitalize() for kind in _KINDS),
            help="Default: gradients, where there are any.",
        ),
        Param(
            "statistic",
            "Statistic",
            "choice",
            "l2",
            choices=_OFFERED,
            choice_labels=tuple(COLUMNS[name].label for name in _OFFERED),
        ),
        Param(
            "colour",
            "Colours",
            "choice",
            choices=("log", "linear"),
            choice_labels=("Logarithmic", "Linear"),
            help="Default: logarithmic for norms and spreads.",
        ),
        REGEX,
        MODE,
        STEP,
        points(1000, 4000),
    ),
)
def overview(
    run: Run,
    *,
    kind: str | None = None,
    statistic: str = "l2",
    colour: str | None = None,
    regex: str | None = None,
    mode: str | None = None,
    step: int | None = None,
    n_out: int = 1000,
) -> go.Figure:
    """Heat map of layers (top: the first one) x steps.

    Exact zeros and values that are not finite have colours of their own.
    """
    at_mode = mode_of(run, mode)
    kind = kind or next((each for each in _KINDS if run.tensors(kind=each, mode=at_mode)), _KINDS[0])
    column = COLUMNS[statistic]
    table = _read(run, kind, column, at_mode, n_out)
    if regex is not None:
        table = table.take([i for i, name in enumerate(table.names) if re.search(regex, name)])
    if not table.names or not len(table.steps):
        return nothing_yet(run, KIND_TITLES[Kind(kind)], regex)
    wish = colour or ("log" if column.sign == "positive" else "linear")
    heat = _heat(table, column, is_log=wish == "log" and column.sign != "signed")
    figure = new_figure(
        [heat],
        title=f"{column.label} of {KIND_TITLES[Kind(kind)]}",
        xaxis=step_axis(table.steps, showgrid=False),
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False, "tickfont": {"size": 10}},
        margin={"t": 40},
    )
    return describe(figure, _caption(table, column, kind), step=step)


def _read(run: Run, kind: str, column: Column, mode: Mode, n_out: int) -> _Table:
    """The statistic of every tensor of a kind, and where tensors hold what is not finite."""
    found = run.overview(kind=kind, column=column.source, mode=mode, also=("nan_count", "inf_count"))
    nan, inf = found.others["nan_count"], found.others["inf_count"]
    steps = np.asarray(found.steps)
    bad = (nan > 0) | (inf > 0)
    saved = len(steps)
    kept = spaced(saved, n_out)
    if len(kept) < saved:  # what is not finite is never dropped: it marks the next step that is drawn
        bad = np.logical_or.reduceat(bad, np.concatenate(([0], kept[:-1] + 1)), axis=1)
        nan, values, steps = nan[:, kept], found.values[:, kept], steps[kept]
    else:
        values = found.values
    return _Table(list(found.names), steps, np.asarray(values, dtype=np.float64), np.isnan(nan), bad, saved)


def _heat(table: _Table, column: Column, *, is_log: bool) -> dict[str, Any]:
    """The heat map: one byte of colour for each cell, and the value for the hover text."""
    values = table.values
    finite = np.isfinite(values)
    usable = finite & (values > 0) if is_log else finite
    near = np.clip(values, -_FAR, _FAR)
    shown = np.log10(near, where=usable, out=np.zeros_like(values)) if is_log else near
    low, high = _span(shown[usable], column)
    level = np.clip((np.where(usable, shown, low) - low) / (high - low), 0, 1) * (255 - _CODES) + _CODES
    codes = level.astype(np.uint8)
    codes[finite & ~usable] = _ZERO
    codes[~finite] = _BAD
    codes[table.missing] = _MISSING
    codes[table.bad] = _BAD
    return {
        "type": "heatmap",
        "x": table.steps,
        "y": short_unique(table.names, 44),
        "z": codes,
        "zmin": 0,
        "zmax": 255,
        "customdata": float32(values),
        "colorscale": _scale(DIVERGING if column.sign == "signed" else SEQUENTIAL, codes),
        "colorbar": colour_bar(column.label, **_bar_ticks(codes, low, high, column, is_log=is_log)),
        "hovertemplate": "%{y}<br>step %{x:,d}: <b>%{customdata:"
        + (".2%" if column.sign == "share" else ".4g")
        + "}</b><extra></extra>",
        "name": column.label,
    }


def _span(shown: NDArray[np.float64], column: Column) -> tuple[float, float]:
    """Ends of the colour scale: symmetric for signed values, and never a single point."""
    if column.sign == "share":
        return 0.0, 1.0
    if not len(shown):
        return 0.0, 1.0
    low, high = float(shown.min()), float(shown.max())
    if column.sign == "signed":
        reach = max(abs(low), abs(high)) or 1.0
        return -reach, reach
    room = max(0.5, abs(low) * 1e-6)  # a half more or less is nothing to a large number
    return (low, high) if high > low else (low - room, high + room)


def _scale(colours: Sequence[str], codes: NDArray[np.uint8]) -> list[tuple[float, str]]:
    """Colour scale over codes 0 to 255: no row, exactly zero, not finite (those that occur), then values."""
    third = _CODES / 3 / 255
    clear = "rgba(0,0,0,0)"
    zero = MUTED if (codes == _ZERO).any() else clear
    bad = BAD if (codes == _BAD).any() else clear
    words = [
        (0.0, clear),
        (third, clear),
        (third, zero),
        (2 * third, zero),
        (2 * third, bad),
        (3 * third, bad),
    ]
    steps = ramp(colours, 25)
    proper = [(3 * third + (1 - 3 * third) * i / 24, each) for i, each in enumerate(steps)]
    return [*words, *proper[:-1], (1.0, steps[-1])]  # plotly ignores a scale that does not end at exactly 1


def _bar_ticks(
    codes: NDArray[np.uint8], low: float, high: float, column: Column, *, is_log: bool
) -> dict[str, Any]:
    """Ticks of the colour bar: round values, and the words that occur."""
    has_words = bool(((codes == _ZERO) | (codes == _BAD)).any())
    lowest = low + (high - low) * (0.04 if has_words else 0.0)  # room for the words below
    places = [place for place in _round_values(low, high, is_log=is_log) if place >= lowest]
    vals = [_CODES + (place - low) / (high - low) * (255 - _CODES) for place in places]
    texts = [number(10**place if is_log else place, 3) for place in places]
    if column.sign == "share":
        texts = [f"{place:.0%}" for place in places]
    if is_log and (codes == _ZERO).any():
        vals.append(float(_ZERO) + 1)
        texts.append("exactly 0")
    if (codes == _BAD).any():
        vals.append(float(_BAD) + 1)
        texts.append("NaN, inf")
    return {"tickmode": "array", "tickvals": vals, "ticktext": texts}


def _round_values(low: float, high: float, *, is_log: bool) -> list[float]:
    """About six round places between the ends: whole powers of ten, or multiples of 1, 2 or 5."""
    span = high - low
    if is_log and span >= 1.5:
        stride = max(1, round(span / 6))
        return [float(power) for power in range(int(np.ceil(low)), int(np.floor(high)) + 1, stride)]
    if is_log:
        return [low, (low + high) / 2, high]
    grain = 10.0 ** np.floor(np.log10(span / 4))
    step = next(grain * each for each in (1, 2, 5, 10) if span / (grain * each) <= 6)
    first = np.ceil(low / step - 1e-9) * step
    return [float(value) + 0.0 for value in np.arange(first, high + step * 1e-6, step)]


def _caption(table: _Table, column: Column, kind: str) -> str:
    """How many layers, and which ones have the smallest and largest value at the last step."""
    tensors, steps = count(len(table.names), "tensor"), count(table.saved, "saved step")
    if len(table.steps) < table.saved:
        steps = f"{len(table.steps):,} of {steps}"
    text = f"{column.label} of {tensors} ({KIND_TITLES[Kind(kind)]}) over {steps}"
    if table.bad.any():
        row = int(np.flatnonzero(table.bad.any(axis=1))[0])
        first = int(table.steps[np.flatnonzero(table.bad[row])[0]])
        text += f"; not finite first in {table.names[row]} at step {first:,}"
    last = table.values[:, -1]
    if not np.isfinite(last).any() or column.sign != "positive":
        return text + "."
    low, high = int(np.nanargmin(last)), int(np.nanargmax(last))
    return (
        f"{text}; at the last one from {number(float(last[low]), 3)} ({table.names[low]}) "
        f"to {number(float(last[high]), 3)} ({table.names[high]})."
    )
