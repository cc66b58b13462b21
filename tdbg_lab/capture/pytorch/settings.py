"""Settings of PyTorch optimizers that can be changed while they step: learning rates, clipping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch

from tdbg_lab.capture.changing import Changed, choose
from tdbg_lab.capture.pytorch.schedulers import scale_group, scale_schedule, schedulers_of
from tdbg_lab.capture.pytorch.shown import TellingOptimizer
from tdbg_lab.errors import ConfigError
from tdbg_lab.store import AppliedSetting, SettingChange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch.optim import Optimizer

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.optimizers import OptimizerWatch
__all__ = ["TorchSettings"]

_OVERWRITTEN = (
    "the program sets the learning rate itself before each step, with no scheduler of PyTorch: "
    "the rate that was asked for did not last; change it in the program"
)
_CLOSURE = (
    "gradients are computed by a closure within optimizer.step, after the last moment to clip them; "
    "let the trainer clip (gradient_clip_val of Lightning)"
)
_ZERO = "DeepSpeed keeps the gradients; set gradient_clipping in its configuration"
_FLAT = "parameters are sharded by FSDP1, where only model.clip_grad_norm_ knows the norm"


class TorchSettings:
    """What may be changed of the optimizers that are watched. Nothing is, until somebody asks.

    Attributes
    ----------
    active
        Whether something has to be done before each step: an optimizer is clipped, or a changed rate
        is to be looked at once.
    """

    def __init__(self, engine: Engine, watch: OptimizerWatch) -> None:
        self._engine = engine
        self._watch = watch
        self._norms: WeakKeyDictionary[Optimizer, float] = WeakKeyDictionary()
        self._expected: WeakKeyDictionary[Optimizer, list[float]] = WeakKeyDictionary()
        self.active = False

    def change(self, change: SettingChange) -> Changed:
        """Change a setting of one optimizer, or of all.

        Raises
        ------
        ConfigError
            It cannot be done.
        """
        chosen = self._chosen(change)
        if change.setting == "clip_norm":
            return self._change_clipping(chosen, change.value)
        plans = [_plan(name, optimizer, change) for name, optimizer in chosen.items()]
        applied: list[AppliedSetting] = []
        for plan in plans:
            applied += self._set_rates(plan)
            if not plan.schedulers:
                rates = [float(group["lr"]) for group in plan.optimizer.param_groups]
                self._expected[plan.optimizer] = rates
                self.active = True
        return Changed(applied, _note(plans))

    def _chosen(self, change: SettingChange) -> dict[str, Optimizer]:
        known = self._watch.named()
        if not known:
            raise ConfigError("No optimizer is known yet: ask again when the first one has stepped.")
        return choose(change, known)

    # -- learning rates ---------------------------------------------------------------------------

    def _set_rates(self, plan: _Plan) -> list[AppliedSetting]:
        prefix = self._watch.prefix(plan.name)
        applied = []
        for index, new in plan.rates.items():
            group = plan.optimizer.param_groups[index]
            applied.append(AppliedSetting(f"optimizer/lr/{prefix}{index}", float(group["lr"]), new))
            if isinstance(group["lr"], torch.Tensor):  # what is compiled holds on to it
                group["lr"].fill_(new)
            else:
                group["lr"] = new
            if plan.schedulers:
                scale_group(group, plan.factors[index])
        for scheduler in plan.schedulers:
            scale_schedule(scheduler, plan.factors)
        return applied

    # -- clipping ---------------------------------------------------------------------------------

    def _change_clipping(self, chosen: Mapping[str, Optimizer], value: float | None) -> Changed:
        if value is not None:
            if self._watch.has_closure:
                raise ConfigError(f"It cannot be clipped here: {_CLOSURE}.")
            for optimizer in chosen.values():
                if (reason := _kept_away(optimizer)) is not None:
                    raise ConfigError(f"It cannot be clipped here: {reason}.")
        applied = []
        for name, optimizer in chosen.items():
            what = f"clip_norm/{name}" if self._watch.prefix(name) else "clip_norm"
            applied.append(AppliedSetting(what, self._norms.pop(optimizer, None), value))
            if value is not None:
                self._norms[optimizer] = value
        self.active = bool(self._norms or self._expected)
        note = (
            "" if value is None else "Clipping of the program itself, where there is some, goes on before it."
        )
        return Changed(applied, note)

    # -- before each step -------------------------------------------------------------------------

    def before(self, optimizer: Optimizer, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """An optimizer is about to step: clip, and look whether a changed rate has lasted."""
        expected = self._expected.pop(optimizer, None)
        if expected is not None:
            if expected != [float(group["lr"]) for group in optimizer.param_groups]:
                self._engine.guard.notice("learning_rate", _OVERWRITTEN)
            self.active = bool(self._norms or self._expected)
        norm = self._norms.get(optimizer)
        if norm is None:
            return
        if any(callable(one) for one in (*args[1:], *kwargs.values())):
            self._engine.guard.notice("clip_norm", _CLOSURE)
            return
        scale = getattr(optimizer, "grad_scale", None)  # a fused optimizer takes it out of them itself
        limit = norm if scale is None else norm * float(scale)
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        torch.nn.utils.clip_grad_norm_(parameters, limit)


@dataclass(frozen=True, slots=True)
class _Plan:
    """New rates of an optimizer, worked out before anything is touched."""

    name: str
    optimizer: Optimizer
    rates: dict[int, float]
    """New rates by parameter group."""
    factors: list[float]
    """New rate through old rate of every group; 1.0 where nothing changes."""
    schedulers: list[Any]


def _plan(name: str, optimizer: Optimizer, change: SettingChange) -> _Plan:
    """What to do to one optimizer.

    Raises
    ------
    ConfigError
        There is no such group, or the new rate is out of bounds.
    """
    groups, schedulers = optimizer.param_groups, schedulers_of(optimizer)
    if change.group is not None and change.group >= len(groups):
        raise ConfigError(
            f"There is no parameter group {change.group}; the optimizer has {len(groups)}, from 0."
        )
    rates: dict[int, float] = {}
    factors = [1.0] * len(groups)
    for index, group in enumerate(groups):
        if change.group not in (None, index):
            continue
        if "lr" not in group:
            raise ConfigError(f"{type(optimizer).__name__} has no learning rate.")
        old = float(group["lr"])
        if change.factor is not None:
            rates[index], factors[index] = old * change.factor, change.factor
        else:
            rates[index] = float(change.value or 0.0)
            factors[index] = _factor(old, rates[index], schedulers)
        if rates[index]:
            SettingChange(setting="learning_rate", value=rates[index])  # says when it is out of bounds
    return _Plan(name, optimizer, rates, factors, schedulers)


def _factor(old: float, new: float, schedulers: Sequence[Any]) -> float:
    if old > 0:
        return new / old
    if schedulers:
        raise ConfigError(
            f"The learning rate is {old:g} now, set by {type(schedulers[0]).__name__}: give a factor for its "
            "schedule instead of a value (learning_rate*=0.1)."
        )
    return 1.0


def _note(plans: Sequence[_Plan]) -> str:
    """What schedulers do with the new rate."""
    names = dict.fromkeys(type(one).__name__ for plan in plans for one in plan.schedulers)
    if not names:
        return "No scheduler of PyTorch steers it."
    return (
        f"It goes on changing with {', '.join(names)}: the whole schedule is multiplied from here on by the "
        "same factor."
    )


def _kept_away(optimizer: Optimizer) -> str | None:
    """Why its gradients are not where they could be clipped; None if they are."""
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    if any(type(one).__name__ == "FlatParameter" for one in parameters):
        return _FLAT
    return _ZERO if isinstance(optimizer, TellingOptimizer) else None
