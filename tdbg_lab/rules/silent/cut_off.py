"""Layers of Keras that the loss does not reach, by what is recorded of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from tdbg_lab.rules.view import RunView

__all__ = ["cut_off"]

_RATIO = "optimizer/update_ratio/"
"""Recorded of what is trainable, and of nothing else."""
_RECORDED = 8
"""Recorded steps that are needed."""


def cut_off(run: RunView) -> list[str]:
    """Weights that are trainable and used, never move, and get no gradient or none but zero.

    Empty where all are like that, and for other frameworks. Biases that begin at zero have no size to move
    by: their layers' weights tell of them.
    """
    frames = run.frames(Kind.GRADIENT, 1)
    if run.info.framework.lower() != "keras" or not frames:
        return []
    reached = {
        key.name.removeprefix("gradient/") for key, row in frames[-1].items(Kind.GRADIENT) if row.l2 != 0
    }
    called = {key.module for key in run.tensors(Kind.ACTIVATION)}
    still = []
    for key in run.tensors(Kind.OPTIMIZER, regex=f"^{_RATIO}"):
        name, ratios = key.name.removeprefix(_RATIO), run.scalars(key.name).values
        known = ratios[np.isfinite(ratios)]
        if len(known) >= _RECORDED and not known.any() and name.rpartition("/")[0] in called:
            still.append(name)
    return [name for name in still if name not in reached] if reached else []
