"""Capture: `attach` and everything that touches a training framework.

The files here know steps, schedules, rows and the run directory; a framework's own hooks stand in
the folder of its name. Importing this package imports no framework, and nothing at all before a name
is used: a program that is watched from outside imports its libraries itself, in its own order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.lazy import on_demand

if TYPE_CHECKING:
    from tdbg_lab.capture.attaching import attach
    from tdbg_lab.capture.handle import Handle
    from tdbg_lab.capture.registry import open_handles

__all__ = ["Handle", "attach", "open_handles"]

__getattr__ = on_demand(
    __name__,
    {
        "Handle": "tdbg_lab.capture.handle",
        "attach": "tdbg_lab.capture.attaching",
        "open_handles": "tdbg_lab.capture.registry",
    },
)
