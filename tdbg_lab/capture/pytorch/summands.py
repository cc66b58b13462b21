"""What a loss is the sum of, as the graph of its gradients tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.pytorch.accumulation import factor_of

if TYPE_CHECKING:
    from collections.abc import Container

__all__ = ["summands"]

_DEEPEST = 64
"""Nodes between a loss and what it is the sum of."""
_MOST = 64
"""What it may be the sum of."""
_SAME = frozenset(
    f"{kind}Backward0" for kind in ("Sum", "Stack", "Squeeze", "Unsqueeze", "View", "Clone", "ToCopy")
)
"""Nodes that add up single numbers, or only give them another shape."""


def summands(node: Any, wanted: Container[Any]) -> dict[Any, float] | None:
    """The nodes that a loss is the sum of, and what each is multiplied by.

    Parameters
    ----------
    node
        The ``grad_fn`` of the loss, before the backward.
    wanted
        Nodes of single numbers that it may be the sum of. Where one is the sum of others, these are told.

    Returns
    -------
    dict or None
        None where something else is among what it is the sum of.
    """
    return _summands(node, wanted, _DEEPEST, {})


def _summands(
    node: Any, wanted: Container[Any], left: int, known: dict[Any, dict[Any, float] | None]
) -> dict[Any, float] | None:
    """With how many nodes may lie between, and what is known of those that were met already."""
    if node in known:
        return known[node]
    found: dict[Any, float] = {}
    for one, weight in _inputs(node) if left else ():
        parts = _summands(one, wanted, left - 1, known)
        if parts is None or len(parts) > _MOST:
            found.clear()
            break
        for part, factor in parts.items():
            found[part] = found.get(part, 0.0) + weight * factor
    known[node] = found or ({node: 1.0} if node in wanted else None)
    return known[node]


def _inputs(node: Any) -> list[tuple[Any, float]]:
    """What a node adds up, and what each is multiplied by; none where it computes something else."""
    weights: tuple[float, ...]
    kind, following = type(node).__name__, node.next_functions
    if kind in {"AddBackward0", "SubBackward0"}:
        alpha = float(node._saved_alpha)  # noqa: SLF001 - nothing else tells
        weights = 1.0, alpha if kind == "AddBackward0" else -alpha
    elif kind == "NegBackward0":
        weights = (-1.0,)
    elif kind == "MeanBackward0":
        weights = (1 / node._saved_self_sym_numel,)  # noqa: SLF001
    elif kind in _SAME:
        weights = (1.0,) * len(following)
    else:
        factor = factor_of(node)
        weights = () if factor is None else (factor, factor)
    return [(one, weight) for (one, _), weight in zip(following, weights, strict=False) if one is not None]
