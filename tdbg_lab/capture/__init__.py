"""Capture: `attach` and everything that touches a training framework.

The files here know steps, schedules, rows and the run directory; a framework's own hooks stand in
the folder of its name. Importing this package imports no framework.
"""

from __future__ import annotations

from tdbg_lab.capture.attach import attach
from tdbg_lab.capture.handle import Handle
from tdbg_lab.capture.registry import open_handles

__all__ = ["Handle", "attach", "open_handles"]
