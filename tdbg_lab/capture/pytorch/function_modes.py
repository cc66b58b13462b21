"""Looks at the functions of PyTorch that are called, which an interrupt may break off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.overrides import _get_current_function_mode

if TYPE_CHECKING:
    from torch.overrides import TorchFunctionMode

__all__ = ["leave"]


def leave(mode: TorchFunctionMode | None) -> None:
    """Take a mode off, unless an interrupt has done so, or came before it was entered."""
    if mode is not None and _get_current_function_mode() is mode:  # type: ignore[no-untyped-call]
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
