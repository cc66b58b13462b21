"""What follows when nothing is learnt: one list for all rules that find a reason for it."""

from __future__ import annotations

__all__ = ["NOT_LEARNING", "NOT_MOVED", "NOT_TOLD_APART"]

NOT_LEARNING = ("loss_not_decreasing", "oscillating_loss", "overtraining", "unrelated_labels", "confusion")
"""Rules whose troubles follow from a model that does not learn. Not overfitting, for which it must learn."""
NOT_TOLD_APART = tuple(one for one in NOT_LEARNING if one != "unrelated_labels")
"""The same of a model that no longer tells samples apart: that may be what unrelated labels taught it."""
NOT_MOVED = (*NOT_LEARNING, "unchanged_tensor", "weight_update_ratio", "learning_rate")
"""The same of a model of which nothing moves the weights: steps look too small for it."""
