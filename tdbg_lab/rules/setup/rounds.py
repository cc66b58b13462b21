"""How far boosting can come in all its rounds, by the rate alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdbg_lab.rules.view import RunView

__all__ = ["is_boosted", "is_last_round", "rate_of", "untold_share", "weighs_classes", "weight_of_yes"]

_LIBRARIES = {"xgboost", "lightgbm"}
_RATES = ("eta", "learning_rate", "shrinkage_rate")
"""What both libraries call the rate."""
_KINDS = {"booster": "gbtree", "boosting": "gbdt", "boosting_type": "gbdt"}
"""Forests and dropout weigh trees otherwise."""


def is_boosted(run: RunView) -> bool:
    """Whether what is trained are boosted trees."""
    return run.info.framework.lower() in _LIBRARIES


def is_last_round(run: RunView, step: int) -> bool:
    """Whether no round of those that are planned is to come; False where that is not known."""
    rounds = run.info.hyperparameters.get("num_boost_round")
    return is_boosted(run) and isinstance(rounds, int) and step + 1 >= rounds


def rate_of(known: Mapping[str, Any]) -> float:
    """The learning rate; 1.0 when it is not known."""
    found = next((known[name] for name in _RATES if isinstance(known.get(name), int | float)), 1.0)
    return float(found)


def weight_of_yes(known: Mapping[str, Any]) -> float:
    """How much a sample of the class 1 of two counts; 1.0 when it is not known."""
    try:
        return float(known.get("scale_pos_weight", 1.0))  # LightGBM takes texts, too
    except (TypeError, ValueError):
        return 1.0


def weighs_classes(run: RunView) -> bool:
    """Whether trees are grown for classes that weigh by their number, which metrics know nothing of."""
    known = run.info.hyperparameters
    return bool(known.get("is_unbalance", known.get("unbalance", False))) or weight_of_yes(known) != 1.0


def untold_share(run: RunView) -> float | None:
    """What is left of what trees could tell, after all rounds that are planned: ``(1 - rate) ** rounds``.

    Each tree is grown on what those before it left, and added with that share of it (shrinkage; Friedman,
    Greedy function approximation, 2001). None where it is not known, or where boosting goes on with a model.
    """
    known = run.info.hyperparameters
    rounds = known.get("num_boost_round")
    if not isinstance(rounds, int) or any(known.get(name, kind) != kind for name, kind in _KINDS.items()):
        return None
    rate = rate_of(known)
    return float((1.0 - rate) ** rounds) if 0.0 < rate < 1.0 else 0.0
