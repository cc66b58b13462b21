"""How large recurrent layers make what they said a step before."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from tdbg_lab.records import TensorKey
    from tdbg_lab.rules.frame import Frame

__all__ = ["recurrent_gains"]

_NAME = re.compile(r"(^|\.|/)(weight_hh(_l\d+)?(_reverse)?|recurrent_kernel)$")


def recurrent_gains(frame: Frame, gradients: Frame | None) -> dict[TensorKey, float]:
    """Root mean square of each recurrent weight times the root of its inputs.

    Gates lie side by side in one weight, so that the shorter side is that of the inputs. It is 0.6 as PyTorch
    begins, and up to 1 with orthogonal weights.

    Parameters
    ----------
    frame
        Weights.
    gradients
        Gradients of the same time, if there are some: weights without are no part of the training.
    """
    return {
        key: float(row.l2) / float(np.sqrt(max(1, row.count))) * float(np.sqrt(min(key.shape)))
        for key, row in frame.items(Kind.WEIGHT)
        if len(key.shape) == 2
        and _NAME.search(key.name)
        and (gradients is None or f"gradient/{key.name}" in gradients.index)
    }
