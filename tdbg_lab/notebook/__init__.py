"""``%tdbg`` magics and inline widgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics."""


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove the magics."""
