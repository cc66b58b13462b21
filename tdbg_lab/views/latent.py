"""The latent space: recorded points in two dimensions, coloured by label, comparable from step to step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.downsample import evenly
from tdbg_lab.analysis.embedding import Points, align, finite_rows, pca, pick_rows, tsne
from tdbg_lab.errors import StepNotFoundError
from tdbg_lab.records import Mode
from tdbg_lab.views.common import STEP, near_step
from tdbg_lab.views.labels import count, percent, short
from tdbg_lab.views.param import Param
from tdbg_lab.views.points import coloured, label_groups
from tdbg_lab.views.registry import Cancelled, Preparation, view
from tdbg_lab.views.style import SIDE_LEGEND, describe, empty, new_figure, small

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray
    from plotly import graph_objects as go

    from tdbg_lab.run import Run

__all__ = ["Embeddings", "latent", "prepare"]

_MOST_STEPS = 64
_KINDS = ("custom", "activation", "input")


@dataclass(frozen=True)
class Embeddings:
    """What `prepare` answers: where each point is at each step embedded so far."""

    coordinates: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    """Shape ``(N, 2)`` by step."""
    rows: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    """Row of the tensor of each point, by step."""


@dataclass(frozen=True, slots=True)
class _Cloud:
    """Points of one step, ready to embed."""

    step: int
    points: Points
    labels: NDArray[Any] | None
    total: int

    def matches(self, other: _Cloud | None) -> bool:
        """Whether row for row both hold the same samples, as far as can be told."""
        if other is None or not np.array_equal(self.points.rows, other.points.rows):
            return False
        if self.labels is None or other.labels is None:
            return self.labels is other.labels
        return bool(np.array_equal(self.labels, other.labels))


def prepare(
    run: Run,
    params: Mapping[str, Any],
    progress: Callable[[float, str], None],
    cancelled: Callable[[], bool],
    previous: Embeddings | None = None,
) -> Embeddings:
    """t-SNE from step to step up to the shown one, each started from the one before.

    Every row that stays in the tensor keeps its place as far as the space allows. With `previous`, goes on
    from there: only steps after the nearest one known are computed.

    Raises
    ------
    Cancelled
        When `cancelled` answers True.
    """
    name, mode = _tensor(run, params["tensor"], params["mode"])
    if name is None:
        return Embeddings()
    saved = np.array(run.raw_steps(name, mode=mode), dtype=np.int64)
    if not len(saved):
        return Embeddings()
    target = near_step(saved, params["step"])
    done = (
        Embeddings(dict(previous.coordinates), dict(previous.rows)) if previous is not None else Embeddings()
    )
    if target in done.coordinates:
        return done
    chain = _chain(saved, target, list(done.coordinates), params["links"])
    before = _known_before(chain, done)
    last = _cloud(run, name, mode, before, params["max_points"]) if before is not None else None
    for i, step in enumerate(chain):
        cloud = _cloud(run, name, mode, step, params["max_points"])

        def report(share: float, i: int = i, step: int = step) -> bool:
            if cancelled():
                return False
            progress((i + share) / len(chain), f"t-SNE of step {step:,} ({i + 1} of {len(chain)})")
            return True

        report(0.0)
        start = (
            done.coordinates[last.step].astype(np.float64)
            if last is not None and cloud.matches(last)
            else None
        )
        found = tsne(cloud.points.values, init=start, perplexity=params["perplexity"], progress=report)
        if cancelled():
            raise Cancelled
        if start is not None:
            found = align(found, start)
        done.coordinates[step] = found.astype(np.float32)
        done.rows[step] = cloud.points.rows
        last = cloud
    progress(1.0, "t-SNE done")
    return _bounded(done, target)


@view(
    "latent",
    title="Latent space",
    description="Recorded points in two dimensions, coloured by label.",
    params=(
        Param("tensor", "Tensor", "tensor", tensor_kinds=_KINDS, help="Default: the first with raw values."),
        Param("method", "Method", "choice", "pca", choices=("pca", "tsne"), choice_labels=("PCA", "t-SNE")),
        Param(
            "mode",
            "Mode",
            "choice",
            choices=("train", "eval", "predict"),
            choice_labels=("Training", "Evaluation", "Prediction"),
            help="Default: the first with raw values.",
        ),
        Param(
            "max_points",
            "Points",
            "int",
            3000,
            minimum=10,
            maximum=20_000,
            help="At most; always the same rows.",
        ),
        Param(
            "perplexity",
            "Perplexity",
            "int",
            30,
            minimum=2,
            maximum=200,
            help="t-SNE: size of a neighbourhood.",
        ),
        Param(
            "links",
            "Steps before",
            "int",
            8,
            minimum=1,
            maximum=50,
            help="t-SNE: earlier steps to start from.",
        ),
        STEP,
    ),
    preparation=Preparation(prepare=prepare, is_needed=lambda params: params["method"] == "tsne"),
)
def latent(
    run: Run,
    *,
    tensor: str | None = None,
    method: str = "pca",
    mode: str | None = None,
    max_points: int = 3000,
    perplexity: int = 30,  # noqa: ARG001 - used by `prepare`
    links: int = 8,  # noqa: ARG001 - used by `prepare`
    step: int | None = None,
    prepared: Embeddings | None = None,
) -> go.Figure:
    """Points of the shown step. t-SNE is drawn from what `prepare` found; until then PCA stands in."""
    name, at_mode = _tensor(run, tensor, mode)
    if name is None:
        return empty(
            "No rows of values are saved in this run.",
            'Record a layer and its labels, handle.record("latent", z, labels=y), or save raw values.',
        )
    saved = np.array(run.raw_steps(name, mode=at_mode), dtype=np.int64)
    if not len(saved):
        return empty(
            f"{name} has no raw values in mode {at_mode}.",
            f'Save them: handle.record("{name}", z, labels=y).',
        )
    shown = near_step(saved, step)
    cloud = _cloud(run, name, at_mode, shown, max_points)
    if not len(cloud.points.rows):
        return empty(
            f"No row of {name} at step {shown:,} is finite.",
            "Look at its histogram: it holds NaN or infinities.",
        )
    groups = label_groups(cloud.labels)
    found = _embedded(cloud, prepared) if method == "tsne" else None
    if found is not None:
        coordinates, titles = found, ("t-SNE 1", "t-SNE 2")
    else:
        first = int(saved[0])
        reference = _cloud(run, name, at_mode, first, max_points) if first != shown else None
        coordinates, titles = _principal(cloud, reference)
    figure = new_figure(
        coloured(coordinates, cloud.points.rows, cloud.labels, groups),
        title=f"{short(name, 50)} at step {shown:,}",
    )
    # distances of t-SNE have no unit
    ticks = {"showticklabels": False, "ticks": ""} if found is not None else {}
    figure.update_layout(
        xaxis={"title": {"text": titles[0]}, **ticks},
        yaxis={"title": {"text": titles[1]}, "scaleanchor": "x", "scaleratio": 1, **ticks},
        showlegend=groups is not None and len(groups) > 1,
        legend={**SIDE_LEGEND, "itemsizing": "constant"},
    )
    is_pending = method == "tsne" and found is None
    if is_pending:
        figure.add_annotation(small("PCA, until t-SNE is ready"))
    caption = _caption(name, cloud, "PCA" if found is None else "t-SNE", groups)
    return describe(figure, caption, step=shown, x_axes=(), tensor=name, pending=is_pending)


def _tensor(run: Run, tensor: str | None, mode: str | None) -> tuple[str | None, Mode]:
    """The tensor and mode to show: by default the first that has raw values in rows."""
    modes = [Mode(mode)] if mode is not None else [*run.modes()] or [Mode.TRAIN]
    names = [tensor] if tensor is not None else _by_kind(run)
    for name in names:
        for each in modes:
            if len(run.raw_steps(name, mode=each)):
                return name, each
    return tensor, modes[0]


def _by_kind(run: Run) -> list[str]:
    """Tensors with raw values, but for single columns; recorded ones first, then activations."""
    keys = {key.name: key for key in run.tensors()}
    order = {kind: place for place, kind in enumerate(_KINDS)}
    names = [name for name in run.raw_names() if name not in keys or len(keys[name].shape) != 1]
    return sorted(
        names, key=lambda name: order.get(keys[name].kind if name in keys else "custom", len(order))
    )


def _cloud(run: Run, name: str, mode: Mode, step: int, most: int) -> _Cloud:
    series = run.tensor(name)
    values = np.asarray(series.value(step, mode=mode))
    if values.ndim == 0:
        values = values.reshape(1, 1)
    if np.iscomplexobj(values):
        values = np.abs(values)
    points = finite_rows(values, pick_rows(len(values), most))
    try:
        labels = series.labels(step, mode=mode)
    except StepNotFoundError:
        labels = None
    if labels is not None:
        labels = np.asarray(labels).reshape(-1)
        labels = labels[points.rows] if len(labels) == len(values) else None
    return _Cloud(step=step, points=points, labels=labels, total=len(values))


def _principal(cloud: _Cloud, reference: _Cloud | None) -> tuple[NDArray[np.float64], tuple[str, str]]:
    """PCA of a cloud, turned towards the one of `reference` when both hold the same points; axis titles."""
    coordinates, shares = pca(cloud.points.values)
    if reference is not None and cloud.matches(reference):
        turned = align(coordinates, pca(reference.points.values)[0])
        return turned, (f"PCA 1 (both: {percent(float(shares.sum()))} of variance)", "PCA 2")
    first, second = (f"PCA {i + 1} ({percent(float(share))} of variance)" for i, share in enumerate(shares))
    return coordinates, (first, second)


def _embedded(cloud: _Cloud, prepared: Embeddings | None) -> NDArray[np.float64] | None:
    """Where `prepare` put the points; None when it does not know them (yet)."""
    if prepared is None or cloud.step not in prepared.coordinates:
        return None
    if not np.array_equal(prepared.rows[cloud.step], cloud.points.rows):
        return None
    return prepared.coordinates[cloud.step].astype(np.float64)


def _bounded(done: Embeddings, target: int) -> Embeddings:
    """The embeddings nearest to the shown step: a run that is followed for days does not pile them up."""
    near = sorted(sorted(done.coordinates, key=lambda step: abs(step - target))[:_MOST_STEPS])
    return Embeddings(
        {step: done.coordinates[step] for step in near}, {step: done.rows[step] for step in near}
    )


def _chain(saved: NDArray[np.int64], target: int, known: list[int], links: int) -> list[int]:
    """Steps to embed in order, ending with `target`, after the nearest known one before it."""
    before = [step for step in known if step < target]
    candidates = saved[(saved <= target) & (saved > max(before, default=-1))]
    return [int(step) for step in candidates[evenly(len(candidates), links)]]


def _known_before(chain: list[int], done: Embeddings) -> int | None:
    return max((step for step in done.coordinates if step < chain[0]), default=None)


def _caption(name: str, cloud: _Cloud, method: str, groups: NDArray[Any] | None) -> str:
    words = f"{method} of {count(len(cloud.points.rows), 'point')} of {name}"
    if cloud.total > len(cloud.points.rows) + cloud.points.dropped:
        words += f" (of {cloud.total:,}, always the same rows)"
    if groups is not None:
        words += f" in {count(len(groups), 'class', 'classes')}"
    if cloud.points.dropped:
        words += f"; {count(cloud.points.dropped, 'row')} with NaN or infinities left out"
    return f"{words}, at step {cloud.step:,}."
