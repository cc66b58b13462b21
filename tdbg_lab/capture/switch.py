"""Everything turned off from outside: ``TDBG_DISABLED=1``, without a change to any script."""

from __future__ import annotations

import os

__all__ = ["SWITCH", "is_off"]

SWITCH = "TDBG_DISABLED"
"""Environment variable that turns everything off."""

_NO = {"", "0", "false", "no", "off"}


def is_off() -> bool:
    """Whether the environment turns everything off."""
    return os.environ.get(SWITCH, "").strip().lower() not in _NO
