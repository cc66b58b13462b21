"""Optimizers of Keras that a loop of PyTorch applies, seen as if they were PyTorch's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import torch
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from tdbg_lab.capture.keras.sinks import inner

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AppliedOptimizer", "as_pytorch"]


def as_pytorch(thing: Any) -> Any:
    """An optimizer of Keras as PyTorch would show it; anything else as it is."""
    return AppliedOptimizer(thing) if isinstance(thing, keras.optimizers.Optimizer) else thing


class _LastHandle(RemovableHandle):
    """Tells when it was removed."""

    def __init__(self, hooks: Any, told: Callable[[], None]) -> None:
        super().__init__(hooks)
        self._told = told

    def remove(self) -> None:
        super().remove()
        self._told()


class AppliedOptimizer(Optimizer):
    """The parameter group and the hooks of a step that PyTorch's optimizers have, of one of Keras.

    It never steps itself: its hooks are called around ``apply`` of the other, which keeps it alive from the
    first of them to the last. What that moves is known from its first call on.
    """

    def __init__(self, optimizer: Any) -> None:
        super().__init__([torch.zeros(0)], {"lr": None})  # an empty list is refused
        self._inner = inner(optimizer)
        self.shown_as = type(self._inner).__name__
        """The class that facts about it name."""
        self.param_groups[0].update(_settings(self._inner))
        self._note(optimizer._trainable_variables if optimizer.built else [])  # noqa: SLF001
        self._keras = optimizer
        self._seen: Callable[..., Any] | None = None

    def register_step_post_hook(self, hook: Any) -> RemovableHandle:
        """As PyTorch's optimizers do; ``apply`` is replaced while such a hook is there."""
        if self._seen is None:
            self._seen = self._applying(self._keras, self._keras.apply)
            object.__setattr__(self._keras, "apply", self._seen)
        handle = _LastHandle(self._optimizer_step_post_hooks, self._leave)
        self._optimizer_step_post_hooks[handle.id] = hook
        return handle

    def _leave(self) -> None:
        if not self._optimizer_step_post_hooks and vars(self._keras).get("apply") is self._seen:
            vars(self._keras).pop("apply")  # unless somebody put theirs around ours
            self._seen = None

    def _note(self, variables: list[Any]) -> None:
        group = self.param_groups[0]
        group["params"] = [one.value for one in variables]
        rate = self._inner.learning_rate
        group["lr"] = rate.value if isinstance(rate, keras.Variable) else rate  # read when it is due

    def _applying(self, optimizer: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        def apply(grads: Any, trainable_variables: Any = None) -> Any:
            before, after = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
            if not after:
                return original(grads, trainable_variables)
            given = None if trainable_variables is None else list(trainable_variables)
            self._note(optimizer._trainable_variables if given is None else given)  # noqa: SLF001
            for hook in list(before.values()):
                hook(self, (self,), {})
            result = original(grads, given)
            for hook in list(after.values()):
                hook(self, (self,), {})
            return result

        return apply


def _settings(optimizer: Any) -> dict[str, Any]:
    """What PyTorch's optimizers keep in their groups. Weight decay of Keras is never a part of gradients."""
    found: dict[str, Any] = {"weight_decay": getattr(optimizer, "weight_decay", None) or 0.0}
    if hasattr(optimizer, "momentum"):
        found["momentum"] = optimizer.momentum
    if hasattr(optimizer, "beta_1") and hasattr(optimizer, "beta_2"):
        found["betas"] = (optimizer.beta_1, optimizer.beta_2)
    return found
