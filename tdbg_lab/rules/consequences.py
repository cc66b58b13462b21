"""What follows when nothing is learnt: one list for all rules that find a reason for it."""

from __future__ import annotations

__all__ = ["NOT_LEARNING"]

NOT_LEARNING = ("loss_not_decreasing", "oscillating_loss", "overtraining", "unrelated_labels", "confusion")
"""Rules whose troubles follow from a model that does not learn. Not overfitting, for which it must learn."""
