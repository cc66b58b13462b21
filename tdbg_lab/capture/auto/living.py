"""Which models and optimizers the program holds, and which of them belong to one training."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from torch import nn
from torch.optim import Optimizer

from tdbg_lab.capture.auto.names import visible
from tdbg_lab.capture.pytorch.shown import ShownOptimizer
from tdbg_lab.capture.pytorch.unwrapping import calls_hooks, unwrapped
from tdbg_lab.capture.pytorch.values import FEW_NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Living", "is_reached", "parameter_ids"]


@dataclass(frozen=True, slots=True)
class Living:
    """Models and optimizers that exist at one moment.

    Finding them takes a look at every object of the process, some 50 ms for half a million.
    """

    modules: list[nn.Module]
    optimizers: list[Optimizer]
    wrappers: list[Optimizer]
    """What is put around optimizers, and is one for the program."""

    @classmethod
    def now(cls) -> Living:
        """Those of this moment. Types are asked, not objects: a lazy object would load itself."""
        modules: list[nn.Module] = []
        optimizers: list[Optimizer] = []
        wrappers: list[Optimizer] = []
        for one in gc.get_objects():
            kind = type(one)
            if issubclass(kind, nn.Module):
                modules.append(one)
            elif issubclass(kind, Optimizer):
                (optimizers if calls_hooks(one) else wrappers).append(one)
        return cls(modules, optimizers, wrappers)

    def as_held(self, optimizer: Optimizer) -> Optimizer:
        """What a variable of the program holds of an optimizer: itself, or what is put around it."""
        around = [one for one in self.wrappers if unwrapped(one) is optimizer]
        return next(iter(visible([optimizer, *around])), optimizer)

    def inner(self) -> list[Optimizer]:
        """Optimizers that another one steps within its own step.

        Those inside a `ZeroRedundancyOptimizer`, and inside one of another library that is shown instead.
        """
        outer = [one for one in self.optimizers if type(one).__name__ == "ZeroRedundancyOptimizer"]
        parts = [vars(one).get("optim") for one in outer]
        parts += [one.inner for one in self.optimizers if isinstance(one, ShownOptimizer)]
        return [one for one in self.optimizers if any(one is part for part in parts)]

    def holders(self, parameters: set[int]) -> list[Optimizer]:
        """Optimizers that hold one of these parameters (by id)."""
        return [one for one in self.optimizers if parameters & parameter_ids(one)]

    def companions(self, own: Iterable[Optimizer]) -> list[Optimizer]:
        """`own`, and optimizers that begin together with them: those of a GAN's other model.

        One that holds gradients already, or has a state where ours have none, is left over from
        an earlier training.
        """
        own = list(own)
        begun = any(one.state for one in own)
        others = [
            one
            for one in self.optimizers
            if one not in own and bool(one.state) is begun and not _has_gradients(one)
        ]
        return own + others

    def takes_part(self, optimizer: Optimizer) -> bool:
        """Whether the optimizer moves a model, or a few numbers of its own, as SAC moves its temperature.

        A copy of an optimizer moves copies of parameters, and takes no part.
        """
        moved = parameter_ids(optimizer)
        if any(_holds(module, moved) for module in self.modules):
            return True
        sizes = _sizes(optimizer)
        few = sum(map(prod, sizes)) <= FEW_NUMBERS
        return few and all(_sizes(one) != sizes for one in self.optimizers if one is not optimizer)

    def roots(self, optimizers: Iterable[Optimizer]) -> list[nn.Module]:
        """The outermost modules that hold what the optimizers move and can be called."""
        moved = {id(one) for optimizer in optimizers for one in _parameters(optimizer)}
        found = [root for top in self._tops() for root in _callable(top).values() if _holds(root, moved)]
        return _without_copies(found)

    def paths(self) -> dict[int, str]:
        """Where what can be called stands in holders that cannot, by id."""
        return {
            id(part): path for top in self._tops() for path, part in _callable(top).items() if part is not top
        }

    def beside(self, roots: Iterable[nn.Module]) -> list[nn.Module]:
        """What holders that cannot be called have beside these roots, and a backward has reached.

        An optimizer for each parameter, made as it is first needed, moves one of them alone.
        """
        known = {id(root) for root in roots}
        held = [list(_callable(top).values()) for top in self._tops()]
        together = [parts for parts in held if known & set(map(id, parts))]
        return [part for parts in together for part in parts if id(part) not in known and is_reached(part)]

    def _tops(self) -> list[nn.Module]:
        """Modules that are no part of another one."""
        inner = {id(child) for module in self.modules for child in module.children()}
        return [module for module in self.modules if id(module) not in inner]


def parameter_ids(optimizer: Optimizer) -> set[int]:
    """Ids of what an optimizer moves."""
    return {id(one) for one in _parameters(optimizer)}


def _parameters(optimizer: Optimizer) -> list[nn.Parameter]:
    return [one for group in optimizer.param_groups for one in group["params"]]


def _sizes(optimizer: Optimizer) -> list[tuple[int, ...]]:
    return [tuple(one.shape) for one in _parameters(optimizer)]


def _has_gradients(optimizer: Optimizer) -> bool:
    return any(one.grad is not None for one in _parameters(optimizer))


def _holds(module: nn.Module, moved: set[int]) -> bool:
    return any(id(one) in moved for one in module.parameters())


def is_reached(module: nn.Module) -> bool:
    """Whether a backward has reached a module: one of its parameters has a gradient."""
    return any(one.is_leaf and one.grad is not None for one in module.parameters())


def _callable(module: nn.Module, path: str = "") -> dict[str, nn.Module]:
    """The module, or what is in it when it only holds others, as a ``ModuleDict`` does; by path."""
    forward = getattr(module.forward, "__func__", None)  # a compiled model has one of its own
    if forward is not nn.Module.forward:
        return {path: module}
    found: dict[str, nn.Module] = {}
    for name, child in module.named_children():
        found.update(_callable(child, f"{path}.{name}" if path else name))
    return found


def _without_copies(modules: list[nn.Module]) -> list[nn.Module]:
    """Each module once, and of several with the same parameters (views of one model) the first."""
    kept: list[nn.Module] = []
    covered: set[int] = set()
    for module in sorted(modules, key=lambda one: -sum(1 for _ in one.parameters())):
        own = {id(one) for one in module.parameters()}
        if not own <= covered:
            kept.append(module)
            covered |= own
    return [module for module in modules if any(module is one for one in kept)]
