"""What a loss compares that a function computes, as the graph of its gradients tells.

Nothing is put around functions of the program: the nodes of its graph keep what they were given.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch

from tdbg_lab.capture.pytorch.checks.predictions import PredictionProbe
from tdbg_lab.records import LossKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tdbg_lab.capture.engine import Engine

__all__ = ["ObjectiveFacts", "only_scales"]

_KINDS = {
    **dict.fromkeys(("NllLoss", "NllLoss2D"), LossKind.LOG_PROBABILITIES),
    "BinaryCrossEntropy": LossKind.YES_PROBABILITIES,
    "BinaryCrossEntropyWithLogits": LossKind.YES_LOGITS,
    **dict.fromkeys(("MseLoss", "SmoothL1Loss", "HuberLoss"), LossKind.DISTANCE),
}
_WEIGHTS = {LossKind.LOG_PROBABILITIES: "_saved_weight", LossKind.YES_LOGITS: "_saved_pos_weight"}
_SCALED = frozenset({"Mean", "Sum", "Mul", "Div", "View", "Squeeze", "ToCopy", "Clone"})
"""Nodes between a loss and what ``backward`` is called on."""
_VIEWS = frozenset({"View", "UnsafeView", "ReshapeAlias", "Alias"})
"""Nodes that keep the order of elements."""
_NAME = re.compile(r"^(\w+?)Backward\d*$")
_MAX_NODES = 6


class ObjectiveFacts:
    """Facts about what the loss of a step is given, as ``check/loss/<name>/...``, see `PredictionProbe`."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._probes: dict[LossKind, PredictionProbe] = {}
        self._output: torch.Tensor | None = None

    def keep(self, output: Any) -> None:
        """What the model gave, of which a loss may be computed; it is kept until `forget`."""
        first = output[0] if isinstance(output, tuple | list) and output else output
        self._output = first if isinstance(first, torch.Tensor) and first.requires_grad else None

    def forget(self) -> None:
        """The loss is computed, or the step is complete."""
        self._output = None

    def take(self, objective: torch.Tensor) -> None:
        """Look at what ``backward`` is called on, before it is."""
        node = _behind(objective.grad_fn, _SCALED)
        kind = _KINDS.get(_kind(node))
        if node is None or kind is None:
            return
        try:
            prediction, target = node._saved_self, node._saved_target  # noqa: SLF001
            weights = getattr(node, _WEIGHTS.get(kind, ""), None)
            of_classes = kind is LossKind.LOG_PROBABILITIES
            logits = _logits(node, prediction, self._output) if of_classes else None
        except RuntimeError:  # changed in place since: autograd will not have it either
            return
        if logits is not None:
            kind, prediction = LossKind.LOGITS, logits
        probe = self._probes.get(kind)
        if probe is None:
            probe = self._probes[kind] = PredictionProbe(self._engine, self._name, kind)
        probe.ignored = _signed(getattr(node, "_saved_ignore_index", None))
        probe.weights = weights
        probe.take((prediction, target))


def _logits(loss: Any, like: torch.Tensor, output: torch.Tensor | None) -> torch.Tensor | None:
    """What the loss took the logarithm of the softmax of, in the shape of `like`.

    It is known where the model gave it, or a function that keeps its result, as another softmax does.
    """
    softmax = _behind(loss.next_functions[0][0], _VIEWS)
    if _kind(softmax) != "LogSoftmax":
        return None
    inputs = _behind(softmax.next_functions[0][0], _VIEWS)
    if output is None or inputs is not _behind(output.grad_fn, _VIEWS):
        output = getattr(inputs, "_saved_result", None)
    return None if output is None or output.numel() != like.numel() else output.reshape(like.shape)


def _signed(index: int | None) -> int | None:
    """A node tells a negative number as one of 64 bits without a sign."""
    return index if index is None or index < 1 << 63 else index - (1 << 64)


def _kind(node: Any) -> str:
    """``MseLoss`` of an ``MseLossBackward0``."""
    found = None if node is None else _NAME.match(node.name())
    return "" if found is None else found[1]


def only_scales(node: Any, wanted: Any) -> bool:
    """Whether a node computes what `wanted` does, but for its sign, scaling and reducing it."""
    return any(one is wanted for one in islice(_chain(node, _SCALED | {"Neg"}), _MAX_NODES))


def _behind(node: Any, passed: frozenset[str]) -> Any:
    """The first node that is not one of those to pass."""
    *_, last = _chain(node, passed)
    return last


def _chain(node: Any, passed: frozenset[str]) -> Iterator[Any]:
    """A node, and those behind it as long as they are to be passed, each by its one input with a gradient."""
    yield node
    for _ in range(_MAX_NODES):
        if _kind(node) not in passed:
            return
        inputs = [one for one, _ in node.next_functions if one is not None]
        if len(inputs) != 1:
            return
        node = inputs[0]
        yield node
