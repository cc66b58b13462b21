"""What the loss of a training is computed by: one function or module, or several of which it is the sum."""

from __future__ import annotations

from collections import Counter
from math import isclose, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import nn

from tdbg_lab.capture.pytorch.checks.objective_facts import only_scales
from tdbg_lab.capture.pytorch.loss_functions import LossFunction
from tdbg_lab.capture.pytorch.summands import summands
from tdbg_lab.capture.returns import RETURNS

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence
    from types import CodeType

    import torch

    from tdbg_lab.capture.returns import ReturnListener

__all__ = [
    "ANY_RETURNED",
    "Heard",
    "LossSource",
    "Returned",
    "Term",
    "are_alike",
    "candidates",
    "same_factor",
]

_SAME = 1e-3
"""Part by which a factor may differ from one pass to the next."""


class Returned(NamedTuple):
    """A loss that a function of the program's own returns, as one number or as one for each row of a batch.

    Alone, or in its place among others.
    """

    code: CodeType | None
    place: int | str | None

    def hear(self, listener: ReturnListener) -> None:
        """Tell `listener` of what the function returns from now on."""
        RETURNS.hear(self.code, listener)

    def forget(self, listener: ReturnListener) -> None:
        """Tell `listener` no longer. Idempotent."""
        RETURNS.forget(self.code, listener)


ANY_RETURNED = Returned(None, None)
"""What any function returns."""
LossSource = LossFunction | nn.Module | Returned


class Heard(NamedTuple):
    """What may be a loss."""

    node: Any
    """In the graph of its gradients, if it has any."""
    source: LossSource
    result: torch.Tensor
    mean: torch.Tensor
    """Over what it compares; of a loss that is added up, say."""


class Term(NamedTuple):
    """What computes a loss, or one of those that it is the sum of."""

    source: LossSource
    factor: float
    """What its mean is multiplied by in the loss."""


def same_factor(one: float, other: float) -> bool:
    """Whether two factors are one, each worked out from losses that may be of half precision."""
    return isclose(one, other, rel_tol=_SAME)


def are_alike(terms: tuple[Term, ...], others: tuple[Term, ...]) -> bool:
    """Whether a loss was computed by the same, multiplied by the same, in two passes."""
    return len(terms) == len(others) and all(
        one.source == other.source and same_factor(one.factor, other.factor)
        for one, other in zip(terms, others, strict=True)
    )


def candidates(
    node: Any, loss: torch.Tensor, heard: Sequence[Heard], around: Container[int]
) -> Iterator[tuple[Term, ...]]:
    """What the loss may be computed by, the likeliest first; several of which it is the sum stand as called.

    A function of PyTorch says more than a module that calls it, and that more than a function of the program.
    Of those the inner ones come first, and last the ones that call the model, too, as a whole step does that
    nobody evaluates. One that is called more than once is a tool.

    Parameters
    ----------
    node
        What ``backward`` is called on, in the graph of its gradients.
    loss
        Its value, before a gradient scaler multiplied it.
    heard
        All that may have computed it, in the order of the calls.
    around
        Identities of the code of all functions that were running when the model was called.
    """
    calls = Counter(one.source for one in heard)
    known: list[Heard] = []
    for rank in range(4):
        added = [
            one
            for one in heard
            if one.node is not None
            and _rank(one.source, around) == rank
            and not (isinstance(one.source, Returned) and calls[one.source] > 1)
        ]
        for one in added:
            if only_scales(node, one.node):
                yield from _weighed([(one, 1.0)], loss)
        known += added
        parts = _parts(node, known) if added else []
        used = Counter(one.source for one, _ in parts)
        if len(parts) > 1 and all(calls[source] == times for source, times in used.items()):
            yield from _weighed(parts, loss)


def _rank(source: LossSource, around: Container[int]) -> int:
    if isinstance(source, Returned):
        return 3 if id(source.code) in around else 2
    return int(isinstance(source, nn.Module))


def _parts(node: Any, known: Sequence[Heard]) -> list[tuple[Heard, float]]:
    """What the loss is the sum of, and what each is multiplied by."""
    by_node: dict[Any, Heard] = {}
    for one in known:
        if one.result.numel() == 1:
            by_node.setdefault(one.node, one)
    found = summands(node, by_node) or {}
    return [(one, found[one.node]) for one in known if by_node.get(one.node) is one and one.node in found]


def _weighed(parts: Sequence[tuple[Heard, float]], loss: torch.Tensor) -> Iterator[tuple[Term, ...]]:
    """With the factors by which the means add up to the loss, if there are such."""
    value = float(loss.detach())
    results = [weight * float(one.result.mean()) for one, weight in parts]
    means = [float(one.mean) for one, _ in parts]
    total = sum(results)
    if all(isfinite(one) and one for one in (value, total, *means)):
        yield tuple(
            Term(one.source, result / mean * value / total)
            for (one, _), result, mean in zip(parts, results, means, strict=True)
        )
