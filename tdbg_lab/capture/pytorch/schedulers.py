"""Learning-rate schedulers of an optimizer: found when somebody changes the rate, and scaled with it.

A scheduler computes the next rate from the last one, or from the rates it began with; a change that
is to last must reach both. So the whole schedule is multiplied, from where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.optim.lr_scheduler import LRScheduler

from tdbg_lab.capture.pytorch.instances import instances_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch.optim import Optimizer

__all__ = ["scale_group", "scale_schedule", "scaled", "schedulers_of"]

_GROUP_RATES = ("initial_lr", "max_lr", "min_lr", "swa_lr")
"""Rates that schedulers keep in a parameter group, beside the current one."""
_RATE_LISTS = ("base_lrs", "max_lrs", "min_lrs")
"""Rates that they keep themselves, one a group."""
_RATE = "eta_min"
"""A rate of all groups (cosine annealing)."""


def schedulers_of(optimizer: Optimizer) -> list[Any]:
    """Every scheduler of PyTorch that steers an optimizer.

    An optimizer does not know them, so they are searched for among all objects of the process: tens of
    milliseconds, when somebody changes a rate and never else.
    """
    found = []
    for one in instances_of(LRScheduler):
        steered = vars(one).get("optimizer")
        if steered is optimizer or getattr(steered, "optimizer", None) is optimizer:
            found.append(one)
    return found


def scaled(rate: Any, factor: float) -> Any:
    """A rate times a factor: a number, or the same tensor (what is compiled holds on to it)."""
    if isinstance(rate, torch.Tensor):
        with torch.no_grad():
            return rate.mul_(factor)
    return rate * factor


def scale_group(group: dict[str, Any], factor: float) -> None:
    """Scale what schedulers keep in a parameter group; the current rate is not touched."""
    for name in _GROUP_RATES:
        if _is_rate(group.get(name)):
            group[name] = scaled(group[name], factor)


def scale_schedule(scheduler: Any, factors: Sequence[float]) -> None:
    """Scale a schedule by one factor a parameter group; 1.0 leaves a group as it is.

    What holds for all groups is scaled only when all have the same factor.
    """
    for name in _RATE_LISTS:
        rates = vars(scheduler).get(name)
        if isinstance(rates, list) and len(rates) == len(factors) and all(map(_is_rate, rates)):
            rates[:] = [scaled(rate, factor) for rate, factor in zip(rates, factors, strict=True)]
    if len(set(factors)) == 1 and _is_rate(vars(scheduler).get(_RATE)):
        setattr(scheduler, _RATE, scaled(getattr(scheduler, _RATE), factors[0]))
    if isinstance(vars(scheduler).get("_last_lr"), list):
        scheduler._last_lr = [_copy(group["lr"]) for group in scheduler.optimizer.param_groups]  # noqa: SLF001


def _is_rate(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number or (isinstance(value, torch.Tensor) and value.numel() == 1)


def _copy(rate: Any) -> Any:
    return rate.clone() if isinstance(rate, torch.Tensor) else rate
