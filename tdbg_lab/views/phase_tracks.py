"""Phases of training as bars: a track for each phase, or for each process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.analysis.spans import merge_narrow, side_by_side
from tdbg_lab.views.labels import count, safe
from tdbg_lab.views.machines import named
from tdbg_lab.views.palette import PHASES, faded, phase_colours

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from pandas import DataFrame

    from tdbg_lab.analysis.spans import Bars

__all__ = ["phase_tracks"]

_MOST_TRACKS = 16
_MOST_TRACKS_OF_ALL = 48
"""Where tracks are kept apart by their owners."""
_MOST_PHASES_OF_EACH = 8
_NS = 1e9


def phase_tracks(
    spans: DataFrame, zero: int, pixel: float, owners: Mapping[int, str] | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Bars of each phase, and the names of the tracks from top to bottom.

    Parameters
    ----------
    spans
        Columns of the spans table and ``rank``; ``phase`` is a category.
    zero
        The instant that is 0 s, ns.
    pixel
        Width of a pixel, s.
    owners
        Whose tracks are kept apart: a name for each rank, the same for ranks that share their tracks. None:
        all ranks share them.
    """
    if not len(spans):
        return [], []
    phases = _order([str(each) for each in spans["phase"].unique()])
    code = {str(each): index for index, each in enumerate(spans["phase"].cat.categories)}
    names = list(dict.fromkeys(owners.values())) if owners else [""]
    owner = _owner(spans, owners, names)
    if owners:
        phases = phases[:_MOST_PHASES_OF_EACH]
        names = names[: max(_MOST_TRACKS_OF_ALL // len(phases), 1)]
    phase = spans["phase"].cat.codes.to_numpy()
    begin = (np.asarray(spans["start_ns"], dtype=np.int64) - zero) / _NS
    length = np.asarray(spans["duration_ns"], dtype=np.float64) / _NS
    step = np.asarray(spans["step"], dtype=np.int64)
    traces, tracks = [], []
    for each, colour in zip(phases[:_MOST_TRACKS], phase_colours(phases), strict=False):
        for place, name in enumerate(names):
            own = phase == code[each] if owner is None else (phase == code[each]) & (owner == place)
            rows = np.flatnonzero(own)
            if not len(rows):
                continue
            bars = merge_narrow(begin[rows], length[rows], step[rows], pixel)
            tracks.append(safe(named(each, name)))
            traces.append(_track(tracks[-1], bars, pixel, colour))
    return traces, tracks


def _order(phases: list[str]) -> list[str]:
    """Known phases in the order of a step, then the others as they came."""
    return [each for each in PHASES if each in phases] + [each for each in phases if each not in PHASES]


def _owner(spans: DataFrame, owners: Mapping[int, str] | None, names: list[str]) -> NDArray[np.int64] | None:
    """Place in `names` of the owner of each span, shape ``(N,)``, -1 where there is none; None: all share."""
    if not owners:
        return None
    ranks, row = np.unique(spans["rank"].to_numpy(dtype=np.int64), return_inverse=True)
    places = [names.index(owners[rank]) if rank in owners else -1 for rank in ranks.tolist()]
    return np.array(places, dtype=np.int64)[row]


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
