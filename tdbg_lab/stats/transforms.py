"""Tensors inside the transforms of ``torch.func`` (`vmap`, `grad`, ...): what is behind their wrappers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

__all__ = ["outside_transforms", "transforming", "unwrapped"]

_functorch: Any = torch._C._functorch  # noqa: SLF001 - the only way to ask


def transforming() -> bool:
    """Whether a transform is at work, so that operations give wrapped tensors."""
    return _functorch.peek_interpreter_stack() is not None


def unwrapped(tensor: Tensor) -> Tensor:
    """The values behind the wrappers of ``torch.func``; what `vmap` maps over comes first."""
    while _functorch.is_functorch_wrapped_tensor(tensor):
        axis = _functorch.maybe_get_bdim(tensor) if _functorch.is_batchedtensor(tensor) else 0
        tensor = _functorch.get_unwrapped(tensor)
        if axis > 0:
            tensor = tensor.movedim(axis, 0)
    return tensor


@contextmanager
def outside_transforms() -> Iterator[None]:
    """Let operations give plain tensors, whatever transform is at work."""
    front = torch._C.DispatchKey.FuncTorchDynamicLayerFrontMode  # noqa: SLF001
    back = torch._C.DispatchKey.FuncTorchDynamicLayerBackMode  # noqa: SLF001
    keys = torch._C.DispatchKeySet(front) | torch._C.DispatchKeySet(back)  # noqa: SLF001
    with torch._C._ExcludeDispatchKeyGuard(keys):  # noqa: SLF001
        yield
