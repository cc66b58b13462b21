"""What `attach` returns when everything is turned off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.engine import Engine
from tdbg_lab.capture.handle import Handle
from tdbg_lab.config import CaptureConfig
from tdbg_lab.store import RunFolder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["inert_handle"]


def inert_handle(path: Path) -> tuple[Handle, Engine]:
    """A handle that takes every call and does nothing; `path` is not made."""
    writer: Any = _Nowhere()
    engine = Engine(RunFolder(path), writer, CaptureConfig(), phases=False)
    engine.open = False
    engine.mask = engine.module_mask = 0
    return Handle(engine, request=""), engine


class _Nowhere:
    """A writer that writes nothing."""

    bytes_written = 0

    def append(self, rows: Any) -> None:
        """Nothing."""

    def append_scalars(self, *args: Any, **kwargs: Any) -> None:
        """Nothing."""

    def write_raw(self, *args: Any, **kwargs: Any) -> None:
        """Nothing."""

    def append_spans(self, *args: Any, **kwargs: Any) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""
