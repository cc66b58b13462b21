"""What some loss modules of PyTorch take for granted about what they are given, whatever they compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["both_told", "compared", "convention_facts"]

_SIGNS = {"SoftMarginLoss": 1, "HingeEmbeddingLoss": 1, "CosineEmbeddingLoss": 2, "MarginRankingLoss": 2}
"""Losses whose labels are 1 or -1, and which of their arguments these are."""
_LOGARITHMS = ("KLDivLoss", "CTCLoss")
"""Losses whose first argument is logarithms of probabilities."""
_RANKING, _OF_PAIRS = "MarginRankingLoss", "CosineEmbeddingLoss"


def compared(loss: str, args: Sequence[Any]) -> tuple[Any, Any]:
    """What is told and what is wanted, of what a loss was called with: the first two, as a rule.

    Of two scores to be ranked it is their difference and its sign.
    """
    if loss == _RANKING and len(args) > 2 and all(_numbers(one) for one in args[:3]):
        return args[0].detach() - args[1].detach(), args[2]
    return args[0], args[1]


def both_told(loss: str) -> bool:
    """Whether both are outputs, of pairs of which some are to be unlike: that they are says nothing."""
    return loss == _OF_PAIRS


def convention_facts(loss: str, args: Sequence[Any]) -> dict[str, float]:
    """Facts about what a loss module of this class was given, where it takes something for granted.

    ``sign_min`` and ``sign_zeros`` (share) of labels that should be 1 or -1, ``log_probability_max`` of
    what should be logarithms of probabilities, which are never above 0.

    Parameters
    ----------
    loss
        Name of a class in ``torch.nn``.
    args
        What it was called with.
    """
    at = _SIGNS.get(loss)
    if at is not None and len(args) > at and _numbers(args[at]):
        signs = args[at].detach()
        return {"sign_min": float(signs.min()), "sign_zeros": float((signs == 0).float().mean())}
    if loss in _LOGARITHMS and _numbers(args[0]):
        return {"log_probability_max": float(args[0].detach().max())}
    return {}


def _numbers(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() > 0
