"""Whether optimizers take turns: each steps on gradients that were computed after the other's step.

That is what the players of a game do (a GAN, an actor and its critic). Optimizers of the parts of one
network step one after the other on the gradients of one backward pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdbg_lab.capture.notes import Notes
    from tdbg_lab.capture.pytorch.checks.gradients import GradientWatch

__all__ = ["TurnWatch"]

_FACT = "turns"


class TurnWatch:
    """Compares how many backward passes each optimizer has seen when another one steps, and when it steps.

    Parameters
    ----------
    gradients
        What watches the gradients of each optimizer, by its number; grows as optimizers are added.
    """

    __slots__ = ("_gradients", "_notes", "_passes")

    def __init__(self, notes: Notes, gradients: Mapping[int, GradientWatch]) -> None:
        self._notes = notes
        self._gradients = gradients
        self._passes: dict[int, int] = {}
        """Those of the optimizers that are yet to step, when the last one stepped."""

    def before_step(self, index: int, *, first: bool) -> None:
        """An optimizer is about to step; `first` says that it is the first in this step of the run."""
        if not first and self._gradients[index].passes > self._passes.get(
            index, self._gradients[index].passes
        ):
            self._notes.set(_FACT, 1.0)

    def after_step(self, index: int) -> None:
        """It has stepped."""
        if len(self._gradients) > 1 and not self._notes.value(_FACT):
            self._passes = {other: one.passes for other, one in self._gradients.items() if other != index}
