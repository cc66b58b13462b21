"""What `attach` returns when everything is turned off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.capture.engine import Engine
from tdbg_lab.capture.handle import Handle
from tdbg_lab.capture.ranks import SilentWriter
from tdbg_lab.capture.registry import enter
from tdbg_lab.config import CaptureConfig
from tdbg_lab.store import RunFolder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["inert_handle"]


def inert_handle(path: Path) -> tuple[Handle, Engine]:
    """A handle that takes every call and does nothing; `path` is not made."""
    engine = Engine(RunFolder(path), SilentWriter(), CaptureConfig(), phases=False)
    engine.open = False
    engine.mask = engine.module_mask = 0
    handle = Handle(engine, request="")
    enter(handle)
    return handle, engine
