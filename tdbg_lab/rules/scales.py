"""Parameters that may begin all alike: units differ by others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from tdbg_lab.records import TensorKey
    from tdbg_lab.rules.frame import Frame

__all__ = ["begins_alike"]

_WEIGHT = re.compile(r"(^|[./])(weight|kernel|embeddings?)\w*$")


def _is_scale(key: TensorKey, value: float) -> bool:
    """Whether a parameter that is all `value` leaves what it meets as it is, as far as a name tells.

    What a layer calls its weight is none: units with equal weights stay alike.
    """
    return value == 1.0 and not _WEIGHT.search(key.name)


def _goes_with_another(key: TensorKey, frame: Frame) -> bool:
    """Whether a parameter of the same module and shape is not all one value: by it, units differ already.

    So it is where weights are drawn anew in each step, with a mean and a deviation each (Blundell et al.,
    2015, "Weight Uncertainty in Neural Networks").
    """
    return any(
        other.module == key.module and other.shape == key.shape and row.min != row.max
        for other, row in frame.items(Kind.WEIGHT)
        if other is not key
    )


def begins_alike(key: TensorKey, value: float, frame: Frame) -> bool:
    """Whether a parameter may begin with one value for all, `value`, which is not zero."""
    return _is_scale(key, value) or _goes_with_another(key, frame)
