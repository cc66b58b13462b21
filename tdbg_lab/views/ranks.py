"""Processes of a distributed training side by side: who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.analysis.phases import exclusive_ns, training_spans
from tdbg_lab.views.labels import first_ranks, number, percent, safe
from tdbg_lab.views.palette import ACCENT, phase_colours
from tdbg_lab.views.recent import RANGE, WINDOW, Range, range_words, recent_spans
from tdbg_lab.views.registry import view
from tdbg_lab.views.style import describe, empty, new_figure

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame
    from plotly import graph_objects as go

    from tdbg_lab.run import Run

__all__ = ["Exchange", "exchange", "ranks_view"]

_TOGETHER = ("backward", "optimizer", "eval")
"""Phases in which processes wait for one another: they exchange gradients in backward."""
_MOST_RANKS = 128
_MOST_PHASES = 12
_CLEAR = 0.05
"""Share of the step that a rank must be behind to be called slow."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """How ranks come to their exchange; columns of shape ``(R,)``."""

    rank: NDArray[np.int64]
    before_s: NDArray[np.float64]
    """Median time of a step besides the phases that processes go through together."""
    waits_s: NDArray[np.float64]
    """Median time that the slowest rank of a step needs longer: what this rank waits."""
    step_s: float
    """Median time of a step."""

    @property
    def straggler(self) -> int | None:
        """The rank that the others wait for, when there clearly is one."""
        if len(self.rank) < 2:
            return None
        last = int(self.waits_s.argmin())
        behind = float(np.median(np.delete(self.waits_s, last)) - self.waits_s[last])
        return int(self.rank[last]) if behind > _CLEAR * self.step_s else None


@view(
    "ranks",
    title="Ranks",
    description="Phases of each process of a distributed training side by side, and who waits for whom.",
    params=(WINDOW, RANGE),
)
def ranks_view(
    run: Run,
    *,
    window_s: int = 1800,
    range: Range = None,  # noqa: A002 - its name on the wire
) -> go.Figure:
    """Mean time of each phase by rank, stacked, and how long a rank waits for the slowest one."""
    if len(run.ranks()) < 2:
        return empty(
            "This run has one process.", "Ranks are compared when several processes attach to one run."
        )
    spans = training_spans(recent_spans(run, window_s, range))
    spans = spans[(spans["phase"].astype(str) != "eval").to_numpy()]
    if not len(spans):
        return empty(
            "No phase was recorded yet.", "They are by attach(..., profiler=True), which is the default."
        )
    frame = spans.assign(phase=spans["phase"].astype(str), time=exclusive_ns(spans) / 1e9)
    found = exchange(frame)
    steps = frame.groupby("rank")["step"].nunique()
    table = frame.pivot_table(index="rank", columns="phase", values="time", aggfunc="sum", fill_value=0.0)
    table = table.div(steps, axis=0).loc[found.rank[:_MOST_RANKS]]
    names = [str(name) for name in table.sum().sort_values(ascending=False).index][:_MOST_PHASES]
    x = [f"rank {rank}" for rank in table.index]
    traces = [
        {
            "type": "bar",
            "x": x,
            "y": table[name].to_numpy() * 1e3,
            "name": safe(name),
            "marker": {"color": colour, "line": {"width": 0}},
            "hovertemplate": f"%{{x}}: {safe(name)} <b>%{{y:.4~g}} ms</b> a step<extra></extra>",
        }
        for name, colour in zip(names, phase_colours(names), strict=True)
    ]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": x,
            "y": found.waits_s[:_MOST_RANKS] * 1e3,
            "name": "waits for the slowest",
            "marker": {"color": ACCENT, "size": 10, "symbol": "diamond"},
            "hovertemplate": "%{x} waits <b>%{y:.4~g} ms</b> a step<extra></extra>",
        }
    )
    figure = new_figure(traces, barmode="stack")
    figure.update_layout(
        xaxis={"type": "category"},
        yaxis={"title": {"text": "Mean time of a step (ms)"}, "rangemode": "tozero"},
    )
    caption = range_words(range) + _caption(found, frame) + first_ranks(_MOST_RANKS, len(found.rank))
    return describe(figure, caption, x_axes=())


def exchange(frame: DataFrame) -> Exchange:
    """When ranks come to the exchange, from spans with the columns rank, step, phase and time (s)."""
    before = frame[~frame["phase"].isin(_TOGETHER)]
    table = before.pivot_table(index="step", columns="rank", values="time", aggfunc="sum").dropna()
    ranks = np.array(sorted(frame["rank"].unique()), dtype=np.int64)
    if not len(table) or len(table.columns) < len(ranks):
        return Exchange(ranks, np.zeros(len(ranks)), np.zeros(len(ranks)), 0.0)
    values = table[ranks].to_numpy()
    waits = values.max(axis=1, keepdims=True) - values
    whole = float(frame.groupby(["rank", "step"])["time"].sum().median())
    return Exchange(ranks, np.median(values, axis=0), np.median(waits, axis=0), whole)


def _caption(found: Exchange, frame: DataFrame) -> str:
    slow = found.straggler
    if slow is None:
        return f"{len(found.rank)} ranks come to their exchange of gradients at about the same time."
    at = int(np.flatnonzero(found.rank == slow)[0])
    others = float(np.delete(found.waits_s, at).mean())
    before = frame[~frame["phase"].isin(_TOGETHER)]
    typical = before.pivot_table(index="phase", columns="rank", values="time", aggfunc="median")
    excess = typical[slow] - typical.drop(columns=slow).median(axis=1)
    return (
        f"Rank {slow} is the slow one: the others wait {number(others * 1e3, 3)} ms a step for it "
        f"({percent(others / found.step_s)}), mostly because its {excess.idxmax()} takes "
        f"{number(float(excess.max()) * 1e3, 3)} ms longer."
    )
