"""Losses: of loss modules, given or found in a model, and of models that return their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import ref

import torch

from tdbg_lab.capture.many_calls import MAX_CALLS, tell_of_more
from tdbg_lab.capture.pytorch.checks.predictions import PredictionProbe, is_own
from tdbg_lab.capture.pytorch.checks.within import WithinLoss
from tdbg_lab.capture.pytorch.hook import BoundaryHook, EndHook
from tdbg_lab.capture.pytorch.measuring import is_elsewhere, record_number, record_tensors
from tdbg_lab.capture.pytorch.moment import not_for_real
from tdbg_lab.capture.pytorch.others import OtherModels, is_aside
from tdbg_lab.capture.pytorch.values import dtype_name, single_number, tensors_in
from tdbg_lab.records import Kind, Mode
from tdbg_lab.stats.layouts import ordinary_memory
from tdbg_lab.stats.transforms import unwrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import nn
    from torch.utils.hooks import RemovableHandle

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.plan import Membership
    from tdbg_lab.capture.pytorch.naming import ModuleSite
    from tdbg_lab.records import TensorKey

__all__ = ["LossProbe", "hook_losses", "own_loss", "record_parts"]

_EVAL = Mode.EVAL
_MOST_PARTS = 64
"""Parts of a loss that a model returns by name."""


def hook_losses(
    owner: object,
    engine: Engine,
    given: Mapping[str, nn.Module],
    sites: Sequence[ModuleSite],
    sure: Callable[[], bool],
) -> tuple[list[BoundaryHook], list[RemovableHandle]]:
    """Hook the loss modules that were given and those found in the models.

    Parameters
    ----------
    sure
        Whether nothing compiled can run now.
    """
    places = [(name, module) for name, module in given.items()]
    known = {id(module) for _, module in places}
    for site in sites:
        module = site.module()
        if site.is_loss and module is not None and id(module) not in known:
            places.append((site.path, module))
    classes = [type(module).__name__ for _, module in places]
    hooks, handles = [], []
    for path, module in places:
        name = type(module).__name__
        if classes.count(name) > 1 and path:
            name = path
        probe = LossProbe(engine, name, path)
        if engine.plan.config.checks:
            probe.facts = PredictionProbe.of(engine, name, module)
            if is_own(module) and engine.plan.config.functional:
                handles += _hook_within(owner, engine, WithinLoss(engine, name, sure), module)
        hook = BoundaryHook(owner, engine, probe.name, probe.take)
        hooks.append(hook)
        handles.append(module.register_forward_hook(hook))
    return hooks, handles


def _hook_within(
    owner: object, engine: Engine, within: WithinLoss, module: nn.Module
) -> list[RemovableHandle]:
    """Look at the functions that a loss calls, from before its forward until after it, whatever happens."""
    begin = BoundaryHook(owner, engine, "check/loss", within.begin)
    end = EndHook(owner, within.end)
    return [module.register_forward_pre_hook(begin), module.register_forward_hook(end, always_call=True)]


def own_loss(output: Any) -> torch.Tensor | None:
    """The loss a model returns with its output, under the name ``loss``."""
    if isinstance(output, torch.Tensor):
        return None
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    return loss if isinstance(loss, torch.Tensor) and loss.numel() == 1 else None


def record_parts(engine: Engine, output: Mapping[Any, Any]) -> None:
    """Record the parts of its loss that a model returns by name, as detectors of objects do.

    They are scalars, not losses: what is trained on is their sum, which ``backward`` is called on, and a part
    of it need not fall.
    """
    if len(output) > _MOST_PARTS:
        return
    for name, value in output.items():
        if not _is_part(name, value):
            continue
        key, membership = engine.key(name, Kind.SCALAR)
        if not membership.mask & engine.mask:
            continue
        if single_number(value):
            engine.recorder.add_scalar(key, float(value.item()))
        else:
            _record_late(engine, key, value)


def _is_part(name: Any, value: Any) -> bool:
    if type(name) is not str or "loss" not in name or name == "loss":
        return False
    return type(value) is torch.Tensor and value.numel() == 1 and value.requires_grad


def _record_late(engine: Engine, key: TensorKey, tensor: torch.Tensor) -> None:
    """Record a loss that is no number at hand: one of a device not at once, else the statistics of it."""
    if tensor.numel() == 1 and is_elsewhere(tensor) and ordinary_memory(tensor, None) is not None:
        record_number(engine.recorder, key, tensor.detach())
    else:
        record_tensors(engine.recorder, [key], [tensor.detach()])


def _go_to_place(engine: Engine, output: Any) -> None:
    """Make the place that this loss belongs to the current one, where the last forward may be of another."""
    if not torch.is_grad_enabled():
        if engine.may_evaluate():
            engine.see_evaluation()
    elif any(tensor.requires_grad for tensor in tensors_in(output)) and engine.is_of_step():
        engine.enter_train_step()


def _ending(engine: Engine) -> str:
    """What the name of a loss ends with here, by the data that is evaluated."""
    sets = None if engine.sets is None or engine.recorder.mode is not _EVAL else engine.sets()
    return "" if sets is None else sets.ending()


class LossProbe:
    """The values of one loss."""

    __slots__ = ("_calls", "_engine", "_last", "_others", "_owner", "_visit", "facts", "name", "path")

    def __init__(self, engine: Engine, name: str, path: str = "") -> None:
        self._engine = engine
        self.name = f"loss/{name}"
        self.path = path
        self.facts: PredictionProbe | None = None
        """Looks at saved steps at what the loss is computed of."""
        self._owner: ref[nn.Module] | None = None
        self._visit = -1
        self._calls = 0
        self._others = OtherModels(engine)
        self._last: tuple[tuple[Any, ...], tuple[TensorKey, Membership]] | None = None

    def is_of(self, module: nn.Module) -> bool:
        """Whether the facts are of this module, where several of one class share the probe."""
        return self._owner is not None and self._owner() is module

    def take_over(self, module: nn.Module, facts: PredictionProbe) -> None:
        """Let the facts be of this module, unless another one that has them is still there.

        A loss that is made anew for each step goes on with what was counted so far.
        """
        if self._owner is None:
            self.facts = facts
        elif self._owner() is not None:
            return
        self._owner = ref(module)

    def take(self, module: nn.Module | None, args: Any, output: Any) -> None:
        """Record what a loss module returned, or a function."""
        if not_for_real():
            return
        engine = self._engine
        if engine.rootless and not engine.depth:
            engine.begin_loss(gradients=torch.is_grad_enabled(), again=self._visit == engine.visit)
        elif engine.forwards <= engine.backwards and is_aside(engine):
            number = self._others.begin(args, self._calls if self._visit == engine.visit else 0)
            if number is not None:
                for tensor in tensors_in(output):
                    self.add(tensor, module, number)
                return
        elif engine.recorder.mode is _EVAL or not torch.is_grad_enabled():
            _go_to_place(engine, output)
        if engine.mask & engine.costly and self.facts is not None and not _ending(engine):
            engine.guard.run(f"check/{self.name}", self.facts.take, args)
        if type(output) is torch.Tensor:
            engine.last_loss, engine.last_loss_visit = ref(output), engine.visit
            engine.last_node = output.grad_fn if engine.looks_left else None
            self.add(output, module)
            return
        for tensor in tensors_in(output):
            self.add(tensor, module)

    def add(self, tensor: torch.Tensor, module: nn.Module | None = None, first: int | None = None) -> None:
        """Record one value; a further one at the same place gets a number.

        Parameters
        ----------
        first
            The number of the first one, where it is of another model.
        """
        engine = self._engine
        engine.loss_visit = visit = engine.visit
        if self._visit != visit:
            self._visit, self._calls = visit, 0
            if first is None and engine.recorder.mode is _EVAL:
                self._others.next_batch()
        index, ending = self._calls + (first or 0), ""
        if engine.recorder.mode is _EVAL:
            ending = _ending(engine)
            if first is None:
                index = self._others.number(index)
        self._calls += 1
        if index >= MAX_CALLS:
            tell_of_more(engine, self.name)
            return
        tensor, last = unwrapped(tensor), self._last
        if last is not None and last[0] == (index, ending, tensor.dtype, tensor.shape):
            key, membership = last[1]
        else:
            key, membership = found = self._key(index, ending, tensor, module)
            self._last = (index, ending, tensor.dtype, tensor.shape), found
        if not membership.mask & engine.mask:
            return
        if single_number(tensor):
            engine.recorder.add_scalar(key, float(tensor.item()))
        else:
            _record_late(engine, key, tensor)

    def _key(
        self, index: int, ending: str, tensor: torch.Tensor, module: nn.Module | None
    ) -> tuple[TensorKey, Membership]:
        return self._engine.key(
            f"{self.name}{ending}" if index == 0 else f"{self.name}{ending}:{index}",
            Kind.LOSS,
            path=self.path,
            module=module,
            dtype=dtype_name(tensor),
            shape=tuple(tensor.shape),
        )
