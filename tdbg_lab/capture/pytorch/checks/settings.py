"""Settings of optimizers by which a training can be lost before it begins."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, TypeGuard

from torch import optim

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch.optim import Optimizer

    from tdbg_lab.capture.notes import Notes

__all__ = ["note_settings"]

_ADAPTIVE = (
    *(optim.Adam, optim.NAdam, optim.RAdam, optim.Adamax),
    *(optim.Adagrad, optim.Adadelta, optim.RMSprop),
)
"""They divide by the size of gradients; a penalty that is part of these is divided, too."""


def note_settings(notes: Notes, optimizer: Optimizer) -> None:
    """Note ``optimizer/<class>/<setting>``: of several groups of parameters, the largest."""
    found: dict[str, float] = {}
    for group in optimizer.param_groups:
        for name, value in _settings(optimizer, group):
            found[name] = max(value, found.get(name, value))
    kind = getattr(optimizer, "shown_as", type(optimizer).__name__)
    for name, value in found.items():
        notes.set(f"optimizer/{kind}/{name}", value)


def _settings(optimizer: Optimizer, group: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Momentum, and what weight decay does: adds to gradients that are divided, or shrinks weights a step."""
    betas = group.get("betas")
    if _is_pair(betas) and not _means_otherwise(type(optimizer)):
        yield "beta1", float(betas[0])
        yield "beta2", float(betas[1])
    if "momentum" in group:
        yield "momentum", float(group["momentum"])
    decay = float(group.get("weight_decay", 0.0))
    divided = isinstance(optimizer, _ADAPTIVE) and not isinstance(optimizer, optim.AdamW)
    if divided and not group.get("decoupled_weight_decay", False):
        yield "penalty", decay
    else:
        yield "decay", decay
        yield "shrinks", decay * float(group.get("initial_lr", group.get("lr", 0.0)))


def _is_pair(betas: Any) -> TypeGuard[Sequence[float]]:
    """Whether this is one rate for the mean of gradients and one for their size; Adan has three."""
    return isinstance(betas, tuple | list) and len(betas) == 2


def _means_otherwise(kind: type[Optimizer]) -> bool:
    """Whether the first of two betas is the larger one by default: then they are not those of Adam."""
    parameter = signature(kind).parameters.get("betas")
    betas = None if parameter is None else parameter.default
    return _is_pair(betas) and betas[0] > betas[1]
