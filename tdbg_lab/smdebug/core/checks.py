"""Checks that configurations share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tdbg_lab.smdebug.exceptions import SMDebugValueError

__all__ = ["checked"]


def checked(params: Any, what: str) -> None:
    """Make sure that what shall become a configuration is a mapping.

    Raises
    ------
    SMDebugValueError
        If it is not.
    """
    if not isinstance(params, Mapping):
        raise SMDebugValueError(f"{params!r:.80} cannot become {what}; expected a dict of its fields.")
