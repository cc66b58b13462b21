"""Who wrote what runs: the program, or what is installed."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from sysconfig import get_path
from typing import Any

__all__ = ["of_program"]

_MAIN = {"__main__", "__mp_main__"}
_INSTALLED = {"site-packages", "dist-packages"}
"""Folders of what is installed, in whatever environment."""


def of_program(thing: Any) -> bool:
    """Whether a function or class is written in the program itself, not in what is installed."""
    while isinstance(thing, partial):
        thing = thing.func
    name = getattr(thing, "__module__", None) or ""
    where = getattr(sys.modules.get(name), "__file__", None)
    if name in _MAIN or where is None or name.partition(".")[0] == __name__.partition(".")[0]:
        return name in _MAIN
    return _INSTALLED.isdisjoint(Path(where).parts) and not Path(where).is_relative_to(get_path("stdlib"))
