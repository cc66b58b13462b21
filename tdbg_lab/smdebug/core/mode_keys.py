"""What the model was doing: train, evaluate, predict, or nobody said."""

from __future__ import annotations

from enum import Enum

__all__ = ["ModeKeys"]


class ModeKeys(Enum):
    """Mode of a step. Steps are counted for each mode; *global* steps are counted over all of them."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4
    """Nobody said; and, in a question to a trial, any mode."""
