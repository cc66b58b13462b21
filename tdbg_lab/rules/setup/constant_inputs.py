"""Inputs that tell nothing: all of them the same number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["ConstantInputs"]

_LEAST, _MOST = "check/input_min", "check/input_max"


@rule("constant_inputs", title="Constant inputs")
@dataclass(frozen=True, kw_only=True)
class ConstantInputs(Rule):
    """The inputs of the model are one and the same number, in one batch after the other.

    Empty batches of a loader that failed, pictures that were not read, features multiplied by a mask of
    zeros. Judged by the least and the largest value of the first input at saved steps.
    """

    patience: int = 3
    """Saved steps in a row."""

    explains: ClassVar[tuple[str, ...]] = (
        *("same_batches", "unshuffled_epochs", "unscaled_inputs", "all_zero", "dead_relu", "dead_units"),
        *(
            "vanishing_gradient",
            "layer_collapse",
            "constant_output",
            "attention_collapse",
            "class_imbalance",
            "overfit",
        ),
        *NOT_LEARNING,
    )
    _ADVICE: ClassVar = (
        "Look at a batch of the loader: its files may not have been found or read.",
        "Check what multiplies or masks the inputs, and how they are converted to floating point.",
        "Go back to a checkpoint from before: the model has learnt from labels alone since then.",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("patience", at_least=2)

    def needs(self) -> Needs:
        """Limits of the inputs."""
        return Needs(kinds=(Kind.CHECK,), regex=f"^{_MOST}$")

    def not_applicable(self, run: RunView) -> str:
        """Without inputs that are numbers."""
        known = run.tensors(Kind.CHECK, regex=f"^{_MOST}$")
        return "" if known else "No floating-point inputs of a model were seen so far."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Compare the limits of the last saved batches."""
        least, most = run.scalars(_LEAST), run.scalars(_MOST)
        if not len(most.steps) or (most.steps[-1] != step and run.active is None):
            return None
        limits = np.r_[least.values[-self.patience :], most.values[-self.patience :]]
        if len(limits) < 2 * self.patience or not (limits == limits[0]).all():
            return None
        return self.finding(
            step,
            f"All inputs of the model are {limits[0]:.4g} at the last {self.patience} saved steps.",
            tensor="input",
            evidence={"value": float(limits[0]), "saved_steps_count": self.patience},
            advice=self._ADVICE,
            view=ViewRef("overview", {"kind": "activation", "statistic": "std"}),
            step_first=int(most.steps[-self.patience]),
        )
