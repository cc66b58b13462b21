"""Which handles are open in this process; and what happens to them when it forks.

The one piece of state of the module, and weak: it keeps no handle alive.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING
from weakref import ref

if TYPE_CHECKING:
    from tdbg_lab.capture.handle import Handle

__all__ = ["enter", "flush", "latest_ns", "open_handles"]

_handles: dict[int, ref[Handle]] = {}  # by id; threads may enter while others look
_latest_ns = 0


def open_handles() -> list[Handle]:
    """Handles that are attached, oldest first."""
    return sorted((one for one in _living() if one.attached), key=lambda one: one.created_ns)


def enter(handle: Handle) -> None:
    """Add a handle; it leaves by itself."""
    global _latest_ns  # noqa: PLW0603
    _latest_ns = handle.created_ns
    key = id(handle)
    _handles[key] = ref(handle, lambda _gone: _handles.pop(key, None))
    _flush_between_cells()


def latest_ns() -> int:
    """When the newest handle of this process was made, be it open or not, ns since the epoch; 0 before."""
    return _latest_ns


def flush() -> None:
    """Have every handle write what waits for its next step."""
    for handle in open_handles():
        handle.flush()


def _flush_between_cells() -> None:
    """In a notebook the next step may be long in coming, or never come: flush when a cell ends."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if get_ipython is None else get_ipython()
    if shell is not None:
        shell.events.register("post_run_cell", _after_cell)  # no function twice


def _after_cell(_result: object) -> None:
    flush()


def _in_child() -> None:
    """Make every handle inert: a forked child (a DataLoader worker) writes nothing of ours."""
    for handle in _living():
        handle.disown()


def _living() -> list[Handle]:
    return [handle for known in list(_handles.values()) if (handle := known()) is not None]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
