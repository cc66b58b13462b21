"""Parameters that multiply what they meet, and begin with one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdbg_lab.records import TensorKey

__all__ = ["is_scale"]

_WEIGHT = re.compile(r"(^|[./])(weight|kernel|embeddings?)\w*$")


def is_scale(key: TensorKey, value: float) -> bool:
    """Whether a parameter that is all `value` leaves what it meets as it is, as far as a name tells.

    What a layer calls its weight is none: units with equal weights stay alike.
    """
    return value == 1.0 and not _WEIGHT.search(key.name)
