"""How much of a layer's output differs between samples, from means of its units alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import Kind
from tdbg_lab.rules.memo import remembered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.rules.frame import Frame

__all__ = ["spreads"]

_LEAST_WIDTH = 4
"""Layers of fewer units say nothing: most are heads."""
_LEAST_SAMPLES = 8
"""Observations of each unit that are needed: a batch of one has no spread."""


@remembered
def spreads(frame: Frame) -> NDArray[np.float64]:
    """Spread of each layer over the samples, as a share of its root mean square.

    Parameters
    ----------
    frame
        What was recorded at a step, of R rows.

    Returns
    -------
    NDArray
        Shape ``(R,)``, 0 to 1: the root of what the squared means of the units leave of the mean square. NaN
        for all but layer outputs, for what is not finite, and for too little to tell: fewer than four units,
        or eight observations of each.
    """
    block = frame.block
    found = np.full(len(frame.keys), np.nan)
    rows = frame.rows(Kind.ACTIVATION)
    widths = np.diff(block.channel_offsets)[rows]
    whole = (block.finite_count[rows] == block.count[rows]) & (block.l2[rows] > 0)
    whole &= (widths >= _LEAST_WIDTH) & (block.count[rows] >= _LEAST_SAMPLES * widths)
    rows, widths = rows[whole], widths[whole]
    if not len(rows):
        return found
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    units = np.arange(widths.sum()) + np.repeat(block.channel_offsets[rows] - starts, widths)
    means = block.channel_mean[units].astype(np.float64)
    between = np.add.reduceat(means**2, starts) / widths
    square = block.l2[rows] ** 2 / block.count[rows]
    found[rows] = np.sqrt(np.maximum(0.0, 1.0 - between / square))
    return found
