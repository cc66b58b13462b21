"""What hangs on a framework while a handle is attached."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Session"]


class Session(Protocol):
    """What a framework hung on a model."""

    def detach(self) -> None:
        """Take everything off."""
