"""Which parameters train: held by an optimizer, reached by a gradient, moved by a step."""

from __future__ import annotations

from itertools import repeat
from operator import attrgetter, is_
from typing import TYPE_CHECKING
from weakref import ref

import torch

from tdbg_lab.capture.pytorch.checks.left_over import is_left_over
from tdbg_lab.capture.pytorch.naming import named_parameters
from tdbg_lab.capture.pytorch.values import local
from tdbg_lab.capture.pytorch.zero import has_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch import nn
    from torch.optim import Optimizer

    from tdbg_lab.capture.notes import Notes
    from tdbg_lab.capture.pytorch.checks.pace import Pace

__all__ = ["TrainableWatch"]

_MAX_NAMES = 32
_LOOK_EVERY = 3
_CERTAIN = 2
"""Steps in a row from which something is told."""
_SAMPLE = 16
_trains = attrgetter("requires_grad")
_grad = attrgetter("grad")


class _Orphan:
    """A trainable parameter of the model that no known optimizer holds."""

    __slots__ = ("module", "name", "run", "sample", "value", "version")

    def __init__(self, name: str, module: str, value: torch.Tensor) -> None:
        self.name = name
        self.module = module
        self.value = ref(value)
        self.version = value._version  # noqa: SLF001
        self.run = 0
        self.sample: torch.Tensor | None = None

    def look(self) -> int:
        """Steps in a row that it had a gradient and did not move."""
        value = self.value()
        if value is None or value.grad is None or not value.requires_grad:
            self.run = 0
        elif value._version != self.version:  # noqa: SLF001 - somebody else moves it
            self.run, self.version = 0, value._version  # noqa: SLF001
        else:
            if not self.run:
                self.sample = _few(value)
            self.run += 1
            if self.run == _CERTAIN and not self._same(value):  # moved behind PyTorch's back (``.data``)
                self.run = 0
        return self.run

    def _same(self, value: torch.Tensor) -> bool:
        return self.sample is None or torch.equal(self.sample, _few(value))


class TrainableWatch:
    """Compares what the models have with what the optimizers hold.

    The comparison is made anew when the parameters of the models or the groups of the optimizers
    changed, which is looked for every few steps.
    """

    def __init__(self, notes: Notes, pace: Pace, models: Iterable[tuple[str, nn.Module]]) -> None:
        self._notes = notes
        self._pace = pace
        self._models = [(name, ref(model)) for name, model in models]
        self._signature: tuple[int, ...] = ()
        self._orphans: list[_Orphan] = []
        self.names: dict[int, tuple[str, str]] = {}
        """Path and module of the parameters of the models by their ``id``, as of the last look."""
        self.parts: list[int] = []
        """Modules and parameters of the models, by ``id``, as of the last look."""
        self._foreign: list[ref[torch.Tensor]] = []
        self._without: dict[int, int] = {}
        self._told: dict[int, set[str]] = {}
        """What was told when each optimizer was about to step."""
        self.looked = -1
        """Step of the last look."""
        self._looks = 0

    def due(self, step: int, *, saved: bool) -> bool:
        """Whether it is time to `look`, at `step` of the run: once in it. `saved` says that the step is."""
        if step == self.looked:  # another optimizer's turn
            return False
        due = saved or self._looks < _LOOK_EVERY or step - self.looked >= _LOOK_EVERY
        if due:
            self.looked = step
            self._looks += 1
        return due

    def look(self, optimizers: list[Optimizer]) -> bool:
        """Compare models and optimizers anew if something changed; whether it did."""
        signature = (*self._held(optimizers), *self._walk())
        if signature == self._signature:
            return False
        self._signature = signature
        self._compare(optimizers)
        return True

    @staticmethod
    def _held(optimizers: list[Optimizer]) -> Iterator[int]:
        for optimizer in optimizers:
            yield from (len(group["params"]) for group in optimizer.param_groups)

    def _walk(self) -> list[int]:
        """``id`` of every module and parameter, and whether that is trainable."""
        modules: list[nn.Module] = []
        values: list[torch.Tensor | None] = []
        stack: list[nn.Module | None] = [model() for _, model in self._models]
        while stack:
            module = stack.pop()
            if module is not None:
                modules.append(module)
                values += module._parameters.values()  # noqa: SLF001
                stack += module._modules.values()  # noqa: SLF001
        there = [one for one in values if one is not None]
        self.parts = [*map(id, modules), *map(id, there)]
        return [*self.parts, *map(_trains, there)]

    def _compare(self, optimizers: list[Optimizer]) -> None:
        held = {id(one): one for opt in optimizers for group in opt.param_groups for one in group["params"]}
        known = {orphan.name: orphan for orphan in self._orphans}
        for key in list(self._without):
            self._forget(key)
        self._orphans, self.names = [], {}
        frozen = 0
        for prefix, model in self._models:
            for name, value in _named(model()):
                path = f"{prefix}.{name}" if prefix else name
                module = path.rpartition(".")[0]
                self.names.setdefault(id(value), (path, module))
                frozen += not value.requires_grad
                if value.requires_grad and id(value) not in held and len(self._orphans) < _MAX_NAMES:
                    old = known.get(path)
                    same = old is not None and old.value() is value
                    self._orphans.append(old if old and same else _Orphan(path, module, value))
        self._foreign = [ref(one) for key, one in held.items() if key not in self.names]
        self._notes.set("parameters", float(len(self.names)))
        self._notes.set("frozen_parameters", float(frozen))
        self._note_foreign()

    def judge(self, index: int, optimizer: Optimizer) -> None:
        """Gradients are complete: who of this optimizer has none, and who has one for nothing.

        `index` is the optimizer's place among those of the run.
        """
        told = self._note_unreached(optimizer)
        for orphan in () if index else self._orphans:
            run = orphan.look()
            if run == 1:
                self._pace.wake()
            if run >= _CERTAIN:
                told.add(name := f"without_optimizer/{orphan.name}")
                self._notes.set(name, float(orphan.run), module=orphan.module)
        before = self._told.get(index)
        if before or told:
            for name in (before or set()) - told:
                self._notes.clear(name)
            self._told[index] = told
        if self._foreign:
            self._note_foreign()

    def _note_foreign(self) -> None:
        idle = 0
        for one in self._foreign:
            value = one()
            idle += value is not None and value.grad is None
        self._notes.set("foreign_parameters", float(idle))

    def _note_unreached(self, optimizer: Optimizer) -> set[str]:
        """Note who has no gradient; the names of what was noted.

        Nothing can be said of an empty one, such as a parameter of which FSDP gave this rank no part, nor of
        one whose gradient is kept elsewhere.
        """
        told: set[str] = set()
        without = self._without
        for group in optimizer.param_groups:
            if not without and not any(map(is_, map(_grad, group["params"]), repeat(None))):
                continue  # every one has a gradient: the usual case, and looked at without a loop
            for value in group["params"]:
                if value.grad is not None:
                    if id(value) in without:  # maybe told when another optimizer stepped
                        self._forget(id(value))
                elif (
                    value.requires_grad and id(value) in self.names and value.numel() and not has_parts(value)
                ):
                    run = without[id(value)] = without.get(id(value), 0) + 1
                    path, module = self.names[id(value)]
                    if run == 1:
                        self._pace.wake()
                    if run >= _CERTAIN and len(told) < _MAX_NAMES:
                        told |= self._tell(path, module, run)
        return told

    def _tell(self, path: str, module: str, run: int) -> set[str]:
        """Note a parameter without a gradient for so many looks; the names of what was noted."""
        name, left_over = f"without_gradient/{path}", f"left_over/{path}"
        self._notes.set(name, float(run), module=module)
        if run == _CERTAIN and self._is_left_over(path):
            self._notes.set(left_over, 1.0, module=module)
        return {name, left_over} if self._notes.value(left_over) else {name}

    def _forget(self, key: int) -> None:
        """The parameter has a gradient now, or is counted anew."""
        del self._without[key]
        path, _ = self.names[key]
        self._notes.clear(f"without_gradient/{path}")
        self._notes.clear(f"left_over/{path}")

    def _is_left_over(self, path: str) -> bool:
        for prefix, weak in self._models:
            model, start = weak(), f"{prefix}." if prefix else ""
            if model is not None and path.startswith(start):
                return is_left_over(model, path.removeprefix(start))
        return False


def _named(model: nn.Module | None) -> Iterator[tuple[str, torch.Tensor]]:
    return iter(()) if model is None else named_parameters(model)


def _few(value: torch.Tensor) -> torch.Tensor:
    return local(value).detach().reshape(-1)[:_SAMPLE].clone()
