"""A last layer that is frozen as it was drawn: what leads to it is trained, and it never is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import Kind
from tdbg_lab.rules.silent.loop import fact

if TYPE_CHECKING:
    from tdbg_lab.records import TensorKey
    from tdbg_lab.rules.frame import Row
    from tdbg_lab.rules.view import RunView

__all__ = ["fresh_head"]

_LEAST = 100
"""Values of a weight that show how they were drawn."""
_MAX = 0.95
"""Least share of the bound that the largest value reaches: of 100 so drawn it does but once in 170 times."""
_ERRORS, _OF_STD = 3.0, 0.45
"""Standard errors by which the spread may differ; one of a uniform distribution's, as a share of it, times
the root of how many values there are: the root of (kurtosis - 1) / 4."""
_ROUNDING = 1e-3


def fresh_head(run: RunView) -> TensorKey | None:
    """The weight of a last layer that gets no gradient, and has the values that ``torch.nn`` draws.

    Linear and convolutional layers draw theirs from a uniform distribution between plus and minus one by the
    root of their inputs (``kaiming_uniform_(a=sqrt(5))``, after He et al., 2015): no training leaves them so.
    A copy of a layer that is trained, as a target network begins with, is another matter.
    """
    if not fact(run, "frozen_parameters"):
        return None
    weights, gradients, outputs = (
        next(iter(run.frames(kind, 1)), None) for kind in (Kind.WEIGHT, Kind.GRADIENT, Kind.ACTIVATION)
    )
    if weights is None or gradients is None or outputs is None:
        return None
    if not weights.step == gradients.step == run.step:
        return None
    rows = {key.module: (key, row) for key, row in weights.items(Kind.WEIGHT) if len(key.shape) > 1}
    called = [key.module for key, _ in outputs.items(Kind.ACTIVATION) if key.module in rows]
    if not called:
        return None
    key, row = rows[called[-1]]
    trained = {one.name for one, _ in gradients.items(Kind.GRADIENT)}
    if f"gradient/{key.name}" in trained or not trained or not _is_as_drawn(key, row):
        return None
    copies = [one for one, _ in rows.values() if one.shape == key.shape and f"gradient/{one.name}" in trained]
    return None if copies else key


def _is_as_drawn(key: TensorKey, row: Row) -> bool:
    if row.count < _LEAST:
        return False
    bound = 1.0 / float(np.sqrt(np.prod(key.shape[1:])))
    largest = max(abs(row.min), abs(row.max)) / bound
    error = _OF_STD / float(np.sqrt(row.count))
    return _MAX <= largest <= 1.0 + _ROUNDING and abs(row.std * np.sqrt(3.0) / bound - 1.0) < _ERRORS * error
