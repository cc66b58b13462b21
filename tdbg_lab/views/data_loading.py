"""How long training waits for its data, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.downsample import min_max
from tdbg_lab.analysis.loading import advise
from tdbg_lab.analysis.phases import exclusive_ns, training_spans
from tdbg_lab.store.profiles import read_digest
from tdbg_lab.views.common import STEP, points
from tdbg_lab.views.labels import count, number, percent
from tdbg_lab.views.palette import MUTED, PHASES
from tdbg_lab.views.param import Param
from tdbg_lab.views.recent import (
    RANGE,
    WINDOW,
    Range,
    range_words,
    recent_samples,
    recent_series,
    recent_spans,
)
from tdbg_lab.views.registry import view
from tdbg_lab.views.step_times import no_steps
from tdbg_lab.views.style import describe, empty, new_figure, step_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from pandas import DataFrame
    from plotly import graph_objects as go

    from tdbg_lab.run import Run
    from tdbg_lab.store.loaders import LoaderFacts

__all__ = ["Waiting", "loading_verdict", "loading_view", "waiting"]

_FIRST_STEPS = 2
"""Steps that begin with starting workers and filling caches."""
_SMALL_SHARE = 0.1
_BINS = 100


@dataclass(frozen=True, slots=True)
class Waiting:
    """Time that each step waits for data, and its other time; columns of shape ``(S,)``, s."""

    step: NDArray[np.int64]
    wait_s: NDArray[np.float64]
    busy_s: NDArray[np.float64]

    @property
    def share(self) -> float:
        """Share of the time that is waited, without the first steps."""
        kept = slice(_FIRST_STEPS, None) if len(self.step) > 2 * _FIRST_STEPS else slice(None)
        wait, busy = float(self.wait_s[kept].sum()), float(self.busy_s[kept].sum())
        return wait / (wait + busy) if wait + busy > 0 else 0.0


@view(
    "data_loading",
    title="Data loading",
    description="How long each step waits for its batch, how the data loader is set, and what would help.",
    axis="step",
    params=(
        Param(
            "show",
            "Show",
            "choice",
            "steps",
            choices=("steps", "histogram"),
            choice_labels=("Over steps", "Histogram of waiting"),
        ),
        WINDOW,
        RANGE,
        STEP,
        points(800, 4000),
    ),
)
def loading_view(
    run: Run,
    *,
    show: str = "steps",
    window_s: int = 1800,
    range: Range = None,  # noqa: A002 - its name on the wire
    step: int | None = None,
    n_out: int = 800,
) -> go.Figure:
    """Waiting and other time of each step, and the loader's settings with advice."""
    found = waiting(recent_spans(run, window_s, range))
    if not len(found.step):
        return empty(*no_steps(range))
    said = range_words(range) + loading_verdict(run, found, window_s)
    if show == "histogram":
        return describe(_histogram(found), said, x_axes=())
    traces = [
        _line(found.step, found.busy_s, n_out, "the rest of the step", MUTED),
        _line(found.step, found.wait_s, n_out, "waiting for data", PHASES["data"]),
    ]
    figure = new_figure(traces)
    top_ms, beyond = _top(found)
    axis = {"rangemode": "tozero"} if top_ms is None else {"range": [0.0, top_ms]}
    figure.update_layout(xaxis=step_axis(found.step), yaxis={"title": {"text": "Time (ms)"}, **axis})
    if beyond:
        said += f" {count(beyond, 'step')} {'is' if beyond == 1 else 'are'} higher than the axis."
    return describe(figure, said, step=step)


def _top(found: Waiting) -> tuple[float | None, int]:
    """Where the axis of times ends, ms, and how many steps are higher: None, where it holds them all.

    The first step may take many times as long as all others, which would lie on the axis then.
    """
    ms = np.maximum(found.wait_s, found.busy_s) * 1e3
    top = 1.3 * float(np.percentile(ms[_FIRST_STEPS:], 99)) if len(ms) > 2 * _FIRST_STEPS else 0.0
    return (top, int((ms > top).sum())) if 0 < 2 * top < ms.max() else (None, 0)


def _histogram(found: Waiting) -> go.Figure:
    """How often steps waited how long; the few longest are in the last bin."""
    ms = found.wait_s * 1e3
    low, high = float(ms.min()), float(np.percentile(ms, 99))
    edges = np.linspace(low, high if high > low else low + max(low * 0.01, 1e-3), _BINS + 1)
    counts, _ = np.histogram(np.minimum(ms, edges[-1]), edges)
    trace = {
        "type": "bar",
        "x": (edges[:-1] + edges[1:]) / 2,
        "y": counts,
        "width": float(edges[1] - edges[0]),
        "marker": {"color": PHASES["data"], "line": {"width": 0}},
        "hovertemplate": "%{y:,d} steps wait about %{x:.4~g} ms<extra></extra>",
    }
    return new_figure(
        [trace],
        bargap=0,
        xaxis={"title": {"text": "Waiting for data in a step (ms); the last bin holds all longer ones"}},
        yaxis={"title": {"text": "Steps"}, "rangemode": "tozero"},
    )


def waiting(spans: DataFrame) -> Waiting:
    """Waiting of each training step; ranks are averaged."""
    spans = training_spans(spans)
    if not len(spans):
        return Waiting(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
    phase = spans["phase"].astype(str).to_numpy()
    time = exclusive_ns(spans) / 1e9 / max(spans["rank"].nunique(), 1)
    steps, place = np.unique(spans["step"].to_numpy(dtype=np.int64), return_inverse=True)
    counted = ~np.isin(phase, ("eval", "capture"))
    wait = np.bincount(place, weights=np.where(phase == "data", time, 0.0), minlength=len(steps))
    busy = np.bincount(place, weights=np.where(counted & (phase != "data"), time, 0.0), minlength=len(steps))
    kept = busy > 0  # the wait after the last step belongs to none
    return Waiting(steps[kept], wait[kept].astype(np.float64), busy[kept].astype(np.float64))


def loading_verdict(run: Run, found: Waiting, window_s: int) -> str:
    """What the waiting means and what to do, with numbers."""
    share = found.share
    mean_ms = number(float(np.mean(found.wait_s)) * 1e3, 3)
    text = f"Steps wait {mean_ms} ms for data on average, {percent(share)} of their time"
    loaders = run.loaders()
    for told in (_settings(loaders), _work(run, loaders, window_s), _copying(run)):
        text += f"; {told}" if told else ""
    if share < _SMALL_SHARE:
        return f"{text}: data loading does not hold training up."
    wait, busy = float(np.median(found.wait_s)), float(np.median(found.busy_s))
    workers = loaders[0].num_workers if loaders else None
    advice = advise(wait, busy, workers=workers or 0, cores=_cores(run, window_s))
    if loaders and advice is not None:
        gain = f"would make steps about {percent(advice.gain)} shorter"
        return f"{text}. num_workers={advice.workers} {gain}{_more(loaders)}."
    if loaders:
        return f"{text}. More workers would not help here: make loading itself cheaper{_more(loaders)}."
    return f"{text}. Load in other processes (DataLoader(num_workers=...)), or make loading itself cheaper."


def _settings(loaders: Sequence[LoaderFacts]) -> str:
    if not loaders:
        return ""
    one = loaders[0]
    text = f"the loader has {count(one.num_workers, 'worker')}, batches of {one.batch_size or 'any size'}"
    if one.num_workers:
        text += f", {one.prefetch_factor or 0} prefetched by each"
        text += ", persistent workers" if one.persistent_workers else ""
    return text + (", pinned memory" if one.pin_memory else "")


def _work(run: Run, loaders: Sequence[LoaderFacts], window_s: int) -> str:
    """How busy the workers were: the processes that training has started."""
    if not loaders or not loaders[0].num_workers:
        return ""
    cpu = [one.value.mean() for one in recent_series(run, window_s, ("worker_cpu",))]
    number_of = [one.value.mean() for one in recent_series(run, window_s, ("workers",))]
    if not cpu or not sum(number_of):
        return ""
    return f"its workers compute {percent(float(sum(cpu) / sum(number_of)) / 100)} of the time"


def _copying(run: Run) -> str:
    """Time that copies from host to device took in the last profile that tells."""
    for info in reversed(run.profiles()):
        try:
            kernels = read_digest(info).get("kernels") if info.ready else None
        except (OSError, ValueError):
            continue
        rows = [one for one in kernels if isinstance(one, dict)] if isinstance(kernels, list) else []
        copies = [one for one in rows if "HtoD" in str(one.get("name", ""))]
        spent = [one["total_us"] for one in copies if isinstance(one.get("total_us"), int | float)]
        if spent:
            steps = max(info.last_step - info.first_step + 1, 1)
            return f"copies to the GPU take {number(sum(spent) / steps / 1e3, 3)} ms a step"
    return ""


def _more(loaders: Sequence[LoaderFacts]) -> str:
    one = loaders[0]
    return "" if one.persistent_workers or not one.num_workers else ", with persistent_workers=True"


def _cores(run: Run, window_s: int) -> int | None:
    samples = recent_samples(run, min(window_s, 60), ("cpu",))
    cores = samples["device"].astype(str).nunique() - 1 if len(samples) else 0
    return cores if cores > 0 else None


def _line(
    step: NDArray[np.int64], seconds: NDArray[np.float64], n_out: int, name: str, colour: str
) -> dict[str, Any]:
    at = min_max(seconds, max(n_out, 4), x=step.astype(np.float64))
    return {
        "type": "scatter",
        "mode": "lines" if len(at) > 1 else "markers",
        "x": step[at],
        "y": seconds[at] * 1e3,
        "name": name,
        "line": {"color": colour, "width": 1.6},
        "hovertemplate": f"step %{{x:,d}}: {name} <b>%{{y:.4~g}} ms</b><extra></extra>",
    }
