"""The optimizer within what a library puts around it."""

from __future__ import annotations

from typing import Any

from torch.optim import Optimizer

from tdbg_lab.capture.pytorch.libraries import as_pytorch

__all__ = ["calls_hooks", "unwrapped"]

_HOOKS = "_optimizer_step_pre_hooks"


def unwrapped(optimizer: Any) -> Any:
    """The optimizer whose step calls the hooks.

    Accelerate's wrapper is an optimizer without any of its own, and that of Lightning Fabric has the very
    hooks of the one within. One that shares its groups of parameters with another has that one make the
    steps, perhaps without a step of its own, as programs do for sharpness-aware minimisation.
    """
    passed = [optimizer]
    while (inner := _within(passed[-1])) is not None and all(inner is not one for one in passed):
        passed.append(inner)
    return passed[-1]


def calls_hooks(optimizer: Optimizer) -> bool:
    """Whether hooks belong on this one: it is complete, and no wrapper around another."""
    return hasattr(optimizer, _HOOKS) and unwrapped(optimizer) is optimizer


def _within(optimizer: Any) -> Optimizer | None:
    """The optimizer that this one is put around; None for one that stands alone."""
    inner = getattr(optimizer, "optimizer", None)
    if inner is not None and not isinstance(inner, Optimizer):
        inner = as_pytorch(inner)  # what Accelerate puts around one of DeepSpeed
    hooks = getattr(optimizer, _HOOKS, None)
    if isinstance(inner, Optimizer) and (hooks is None or hooks is getattr(inner, _HOOKS, None)):
        return inner
    groups = getattr(optimizer, "param_groups", None)
    held = [one for one in getattr(optimizer, "__dict__", {}).values() if isinstance(one, Optimizer)]
    return next((one for one in held if getattr(one, "param_groups", held) is groups), None)
