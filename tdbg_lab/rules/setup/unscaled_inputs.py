"""Inputs of a model that are far from the size its initialisation is made for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Kind, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import fact

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["UnscaledInputs"]

_INPUT = "check/input_size"


@rule("unscaled_inputs", title="Inputs not normalised")
@dataclass(frozen=True, kw_only=True)
class UnscaledInputs(Rule):
    """The inputs of the model are far larger or smaller than its initialisation is made for.

    Judged by the root mean square over several batches: pictures from 0 to 255 and raw sensor values are
    reported, values a little above 1 are not. A model that begins with a normalisation is left alone.
    """

    largest: float = 20.0
    """Root mean square above which inputs are too large."""
    smallest: float = 1 / 255
    """Root mean square below which inputs are too small: as large as pictures of 8 bits are at most when they
    are divided by 255 twice. 0 is left to other rules."""
    patience: int = 2
    """Saved steps."""

    explains: ClassVar[tuple[str, ...]] = ("check_input_images",)
    _ADVICE: ClassVar = (
        "Normalise inputs by mean and standard deviation of the training data (same numbers in evaluation).",
        "Divide pictures of 8 bits by 255.",
        "Or begin the model with a normalisation (BatchNorm, LayerNorm).",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("largest", "smallest", above=0)
        self.require("patience", at_least=1)

    def needs(self) -> Needs:
        """Statistics of the inputs."""
        return Needs(kinds=(Kind.CHECK,), regex=f"^{_INPUT}$")

    def not_applicable(self, run: RunView) -> str:
        """Without inputs that are numbers."""
        if not run.tensors(Kind.CHECK, regex=f"^{_INPUT}$"):
            return "No floating-point inputs of a model were seen so far."
        return "The model begins with a normalisation." if fact(run, "normalises") else ""

    def check(self, step: int, run: RunView) -> Finding | None:
        """Look at the last batches that were recorded."""
        if run.frame().get(_INPUT) is None and run.active is None:
            return None
        sizes = run.scalars(_INPUT).values[-self.patience :]
        if len(sizes) < self.patience:
            return None
        if not (sizes.min() > self.largest or 0 < sizes.max() < self.smallest):
            return None
        least, largest = fact(run, "input_min"), fact(run, "input_max")
        return self.finding(
            step,
            f"The inputs of the model have a root mean square of {sizes[-1]:.3g} (from {least:.3g} to "
            f"{largest:.3g}): they are not normalised.",
            tensor="input",
            evidence={
                "root_mean_square": float(sizes[-1]),
                "least": least,
                "largest": largest,
            },
            advice=self._ADVICE,
            view=ViewRef("overview", {"kind": "activation", "statistic": "std"}),
        )
