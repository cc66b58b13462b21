"""Stores that SageMaker Debugger's library smdebug 1.0 wrote, read without it."""

from __future__ import annotations

from pathlib import Path

from tdbg_lab.store.smdebug import folder
from tdbg_lab.store.smdebug.collection import SmdebugCollection
from tdbg_lab.store.smdebug.store import SmdebugStore

__all__ = ["SmdebugCollection", "SmdebugStore", "is_smdebug_store"]


def is_smdebug_store(path: str | Path) -> bool:
    """Whether a folder is what smdebug writes tensors into."""
    return folder.is_smdebug_store(Path(path).expanduser())
