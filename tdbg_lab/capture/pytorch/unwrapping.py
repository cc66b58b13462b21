"""The optimizer within what a library puts around it."""

from __future__ import annotations

from typing import Any

from torch.optim import Optimizer

__all__ = ["calls_hooks", "unwrapped"]

_HOOKS = "_optimizer_step_pre_hooks"


def unwrapped(optimizer: Any) -> Any:
    """The optimizer whose step calls the hooks.

    Accelerate's wrapper is an optimizer without any of its own, and that of Lightning Fabric has the very
    hooks of the one within.
    """
    while isinstance(inner := getattr(optimizer, "optimizer", None), Optimizer):
        if hasattr(optimizer, _HOOKS) and getattr(optimizer, _HOOKS) is not getattr(inner, _HOOKS, None):
            break
        optimizer = inner
    return optimizer


def calls_hooks(optimizer: Optimizer) -> bool:
    """Whether hooks belong on this one: it is complete, and no wrapper around another."""
    return hasattr(optimizer, _HOOKS) and unwrapped(optimizer) is optimizer
