"""Programs: a healthy training, and the same with one declared fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.detection.recipe import Recipe

__all__ = ["Fault", "Program", "Task"]

Change = Callable[["Recipe"], None]


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and how one knows that it was found."""

    name: str
    change: Change
    rules: tuple[str, ...]
    """Any of these finds it; the first ones name the cause."""
    group: str
    """``sagemaker``, ``setup`` or ``silent``."""
    trigger: int = 0
    """First step at which it can be seen."""
    where: str = ""
    """Regular expression for the tensor or module of a right answer; "" when no layer is at fault."""
    causes: tuple[str, ...] = ()
    """Rules that name the cause where no layer is at fault; `rules` when empty."""
    by_construction: bool = False
    """A silent error whether or not the score suffers."""


@dataclass(frozen=True)
class Task:
    """A family's healthy training, with harmless variants of it and its faults."""

    name: str
    family: str
    build: Callable[[int], Recipe]
    """From a seed to a recipe."""
    variants: dict[str, Change]
    faults: tuple[Fault, ...]
    half: str = ""
    """The set: ``tuned``, ``held_out`` and so on, see `benchmarks.detection.catalog`."""


@dataclass(frozen=True)
class Program:
    """One thing to run: a task, healthy in some variant or with a fault."""

    task: Task
    variant: str = ""
    fault: Fault | None = None

    @property
    def name(self) -> str:
        """Unique: ``digits_mlp``, ``digits_mlp+adamw``, ``digits_mlp!no_zero_grad``."""
        if self.fault is not None:
            return f"{self.task.name}!{self.fault.name}"
        return f"{self.task.name}+{self.variant}" if self.variant else self.task.name

    def recipe(self, seed: int) -> Recipe:
        """Make the training for a seed."""
        recipe = self.task.build(seed)
        if self.variant:
            self.task.variants[self.variant](recipe)
        if self.fault is not None:
            self.fault.change(recipe)
        return recipe
