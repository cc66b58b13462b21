"""Who asks a run for something."""

from __future__ import annotations

import getpass

__all__ = ["user_name"]


def user_name() -> str:
    """Name of the user whose process this is; ``""`` where there is none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user id without a name; ImportError: on Windows
        return ""
