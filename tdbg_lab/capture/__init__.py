"""Capture: `attach` and everything that touches a training framework.

The files here know steps, schedules, rows and the run directory; a framework's own hooks stand in
the folder of its name. Importing this package imports no framework, and nothing at all before a name
is used: a program that is watched from outside imports its libraries itself, in its own order.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tdbg_lab.capture.attaching import attach
    from tdbg_lab.capture.handle import Handle
    from tdbg_lab.capture.registry import open_handles

__all__ = ["Handle", "attach", "open_handles"]

_HOME = {"Handle": "handle", "attach": "attaching", "open_handles": "registry"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = found
    return found
