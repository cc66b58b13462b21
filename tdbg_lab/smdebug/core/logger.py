"""The logger of this surface."""

from __future__ import annotations

import logging

__all__ = ["get_logger"]


def get_logger(name: str = "smdebug") -> logging.Logger:
    """The logger ``tdbg_lab.<name>``; how much it says is the application's choice."""
    return logging.getLogger(f"tdbg_lab.{name}")
