"""Clouds of points: one trace for each label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.views.labels import number, short
from tdbg_lab.views.palette import CLASSES, MUTED, SEQUENTIAL, gamma, pick
from tdbg_lab.views.style import colour_bar, float32

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["coloured", "label_groups"]

_MOST_CLASSES = 24
_SYMBOLS = ("circle", "diamond", "square", "triangle-up")


def label_groups(labels: NDArray[Any] | None) -> NDArray[Any] | None:
    """The different labels, ascending, when they are classes; None for numbers on a scale or no labels.

    Labels are classes when they are whole numbers (or bool or text) and there are at most 24 of them.
    """
    if labels is None or not len(labels):
        return None
    if labels.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            if not (np.isfinite(labels).all() and (labels == np.round(labels)).all()):
                return None
    found = np.unique(labels)
    return found if len(found) <= _MOST_CLASSES else None


def coloured(
    coordinates: NDArray[np.float64],
    rows: NDArray[np.int64],
    labels: NDArray[Any] | None,
    groups: NDArray[Any] | None,
) -> list[dict[str, Any]]:
    """Traces of points: one for each class, or one on a colour scale, or one plain.

    Parameters
    ----------
    coordinates
        Shape ``(N, 2)``.
    rows
        Row of the tensor of each point, for the hover text.
    labels
        Shape ``(N,)``, or None.
    groups
        What `label_groups` answered.
    """
    size = 6 if len(rows) <= 1000 else 5
    if labels is None or (groups is None and labels.dtype.kind not in "fiub"):
        marker = {"size": size, "color": pick(0), "opacity": 0.75}
        return [_trace(coordinates, rows, "points", marker, "row %{customdata:,d}")]
    if groups is None:
        marker = {
            "size": size,
            "color": labels.astype(np.float64),
            "colorscale": gamma(SEQUENTIAL, 1.0),
            "colorbar": colour_bar("Label"),
            "opacity": 0.85,
        }
        return [
            _trace(coordinates, rows, "points", marker, "row %{customdata:,d}<br>label %{marker.color:.4g}")
        ]
    traces = []
    for index, group in enumerate(groups):
        mine = labels == group
        text = short(_word(group), 30)
        marker = {
            "size": size,
            "color": CLASSES[index % len(CLASSES)] if len(groups) > 1 else MUTED,
            "opacity": 0.8,
            "symbol": _SYMBOLS[index // len(CLASSES) % len(_SYMBOLS)],
            "line": {"width": 0},
        }
        traces.append(
            _trace(
                coordinates[mine], rows[mine], text, marker, f"label <b>{text}</b><br>row %{{customdata:,d}}"
            )
        )
    return [*traces, *_names(coordinates, labels, groups)]


def _names(
    coordinates: NDArray[np.float64], labels: NDArray[Any], groups: NDArray[Any]
) -> list[dict[str, Any]]:
    """The labels themselves amid their points, so that nobody has to match colours with a legend."""
    if not 1 < len(groups) <= len(CLASSES):
        return []
    middles = np.array([np.median(coordinates[labels == group], axis=0) for group in groups])
    colours = [CLASSES[index] for index in range(len(groups))]
    return [
        {
            "type": "scatter",
            "mode": "text",
            "x": float32(middles[:, 0]),
            "y": float32(middles[:, 1]),
            "text": [short(_word(group), 12) for group in groups],
            "textfont": {"size": 17, "weight": 800, "color": colours, "shadow": "auto"},
            "hoverinfo": "skip",
            "showlegend": False,
            "name": "labels",
        }
    ]


def _trace(
    coordinates: NDArray[np.float64], rows: NDArray[np.int64], name: str, marker: dict[str, Any], hover: str
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": float32(coordinates[:, 0]),
        "y": float32(coordinates[:, 1]),
        "customdata": rows,
        "marker": marker,
        "hovertemplate": f"{hover}<extra></extra>",
    }


def _word(label: Any) -> str:
    return number(float(label), 6) if isinstance(label, (np.floating, float)) else str(label)
