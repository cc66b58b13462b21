"""The function that a model ends in, as the graph of its gradients tells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tdbg_lab.records import OutputEnd

if TYPE_CHECKING:
    import torch

__all__ = ["end_of"]

_ENDS = {
    "Sigmoid": OutputEnd.SIGMOID,
    "Tanh": OutputEnd.TANH,
    "Relu": OutputEnd.RELU,
    "Softmax": OutputEnd.SOFTMAX,
}
_SHAPES = frozenset(
    {"View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Transpose", "T", "Permute"}
    | {"Select", "Slice", "ToCopy", "Clone", "Alias"}
)
"""Nodes that leave values as they are."""
_NAME = re.compile(r"^(\w+?)Backward\d*$")
_MAX_NODES = 6


def end_of(output: torch.Tensor) -> OutputEnd:
    """The function that made a tensor, whatever its shape was changed to since."""
    node = output.grad_fn
    for _ in range(_MAX_NODES):
        found = _NAME.match(node.name()) if node is not None else None
        if node is None or found is None:
            break
        if found[1] not in _SHAPES:
            return _ENDS.get(found[1], OutputEnd.OTHER)
        node = node.next_functions[0][0] if node.next_functions else None
    return OutputEnd.OTHER
