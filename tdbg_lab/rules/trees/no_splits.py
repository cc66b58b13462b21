"""Boosted trees that are nothing but a root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.view import RunView

__all__ = ["NoSplits"]

_DEPTH = "trees/depth"


@rule("no_splits", title="Trees without splits")
@dataclass(frozen=True, kw_only=True)
class NoSplits(Rule):
    """No tree has a split, from the first round on: every row gets the same prediction.

    What a leaf must hold, or a split must gain, is more than the data have: limits that were set for a larger
    table, or for another objective. Trees that find nothing more to split after a while are healthy.
    """

    patience: int = 3
    """Recorded rounds, from the first on."""

    explains: ClassVar[tuple[str, ...]] = (
        *NOT_LEARNING,
        *("constant_output", "unchanged_tensor", "all_zero", "tensor_variance", "learning_rate"),
    )
    _ADVICE: ClassVar = (
        "Lower what a leaf must hold: min_child_weight (XGBoost), min_data_in_leaf (LightGBM).",
        "Lower what a split must gain: gamma or min_split_loss (XGBoost), min_gain_to_split (LightGBM).",
        "Check that the features are not all constant or missing, and that max_depth is above 0.",
    )

    def __post_init__(self) -> None:
        """Check the threshold."""
        super().__post_init__()
        self.require("patience", at_least=1)

    def needs(self) -> Needs:
        """Depths of trees, as the callback of XGBoost or LightGBM records them."""
        return Needs(kinds=(Kind.CUSTOM,), regex=f"^{_DEPTH}$", steps=self.patience + 1)

    def not_applicable(self, run: RunView) -> str:
        """No trees."""
        if run.tensors(Kind.CUSTOM, regex=f"^{_DEPTH}$"):
            return ""
        return "No trees were recorded so far: they come with the callback of XGBoost or LightGBM."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Look at the first rounds; a finding stays until a tree has a split."""
        frames = [one for one in run.frames(Kind.CUSTOM, self.patience + 1) if _DEPTH in one.index]
        first = len(frames) == self.patience
        if not frames or not (first or run.active) or any(_depth(one) > 0 for one in frames):
            return None
        return self.finding(
            step,
            f"No tree has a split in any of {step + 1} rounds: every row gets the same prediction.",
            severity=Severity.WARNING,
            tensor=_DEPTH,
            evidence={"rounds_count": step + 1},
            advice=self._ADVICE,
            view=ViewRef("statistics", {"tensors": [_DEPTH], "statistic": "max"}),
            step_first=run.active.step_first if run.active else frames[0].step,
        )


def _depth(frame: Frame) -> float:
    """Levels of the deepest tree of a round."""
    return float(frame.block.max[frame.index[_DEPTH]])
