"""Which tensors of a run are one number at each step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from tdbg_lab.records import TensorKey

__all__ = ["is_number"]

_KINDS = frozenset({Kind.LOSS, Kind.SCALAR, Kind.OPTIMIZER, Kind.COST, Kind.CHECK})


def is_number(key: TensorKey) -> bool:
    """Whether a tensor is one number, whatever its count at a step.

    The batches of an evaluation, micro-steps and ranks each count one: the number of the step is their mean.
    """
    return key.kind in _KINDS and math.prod(key.shape) == 1
