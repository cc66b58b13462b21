"""What the model was doing: train, evaluate, predict, or nobody said."""

from __future__ import annotations

from enum import Enum

__all__ = ["ALLOWED_MODES", "ALLOWED_MODE_NAMES", "ModeKeys", "str_to_mode_keys"]


class ModeKeys(Enum):
    """Mode of a step. Steps are counted for each mode; *global* steps are counted over all of them."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4
    """Nobody said; and, in a question to a trial, any mode."""


ALLOWED_MODES = list(ModeKeys)
ALLOWED_MODE_NAMES = [mode.name for mode in ModeKeys]


def str_to_mode_keys(mode_str: str) -> ModeKeys:
    """The mode called ``train``, ``eval``, ``predict`` or ``global``, in any case.

    Raises
    ------
    SMDebugValueError
        If there is none.
    """
    try:
        return ModeKeys[mode_str.upper()]
    except KeyError:
        from tdbg_lab.smdebug.exceptions import SMDebugValueError

        raise SMDebugValueError(
            f"Invalid mode {mode_str!r}: choose from {', '.join(ALLOWED_MODE_NAMES)}."
        ) from None
