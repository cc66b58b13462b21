"""The modes, and which one a name means."""

from __future__ import annotations

from tdbg_lab.smdebug.core.mode_keys import ModeKeys
from tdbg_lab.smdebug.exceptions import SMDebugValueError

__all__ = ["ALLOWED_MODES", "ALLOWED_MODE_NAMES", "ModeKeys", "str_to_mode_keys"]


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
        raise SMDebugValueError(
            f"Invalid mode {mode_str!r}: choose from {', '.join(ALLOWED_MODE_NAMES)}."
        ) from None
