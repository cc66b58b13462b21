"""Runs that should be the same and are not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.errors import TdbgError
from tdbg_lab.records import Mode, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.tensors.selection import chosen, why_nothing

if TYPE_CHECKING:
    from tdbg_lab.records import Finding, StatsBlock, TensorKey
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.view import RunView
    from tdbg_lab.run import Run

__all__ = ["SimilarAcrossRuns"]

_COLUMNS = ("mean", "std", "l1", "l2", "min", "max")


@rule("similar_across_runs", title="Similar across runs")
@dataclass(frozen=True, kw_only=True)
class SimilarAcrossRuns(Rule):
    """The first tensor that differs from the same tensor of another run at the same step.

    Made for repeating a run: another machine, another version, a port. Raw values are compared where both
    runs have them, else statistics. Differences below `tolerance` are those of rounding; they grow with the
    steps, so the first tensor that differs, in the order of the forward pass, is named.

    With `classic`, SageMaker Debugger's rule: it fires when any chosen tensor differs, as ``numpy.allclose``
    says with its defaults; the guide does not say how tensors are compared (AWS developer guide,
    SimilarAcrossRuns).
    """

    other: str = ""
    """Directory of the run to compare with."""
    tolerance: float = 1e-3
    """Largest difference, relative to the size of the tensor (its L2 norm)."""
    collection_names: str | None = None
    """Collections to look at, joined by commas."""
    regex: str | None = None
    """Names of tensors to look at, besides; without both, all but facts of the optimizer."""
    classic: bool = False

    _ADVICE: ClassVar = (
        "Compare seeds, the order of the data, and versions of the two runs.",
        "Save every step of both runs to find the first one that differs.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("tolerance", at_least=0)

    def needs(self) -> Needs:
        """Whatever is chosen, with raw values where there are."""
        return Needs(raw=True)

    def not_applicable(self, run: RunView) -> str:
        """No other run."""
        if not self.other:
            return "No run to compare with is named: other='runs/first'."
        if isinstance(self._opened, str):
            return self._opened
        return why_nothing(run, self.collection_names, self.regex)

    def check(self, step: int, run: RunView) -> Finding | None:
        """Compare what both runs recorded at this step."""
        other = self._opened
        if isinstance(other, str):
            return None
        other.refresh()
        for mode in Mode:
            frame = run.frame(mode)
            for key in frame.keys:
                if not chosen(key, self.collection_names, self.regex) or key.name.startswith("tdbg/"):
                    continue
                difference = self._difference(run, frame, key, other)
                if difference is not None and difference > (0.0 if self.classic else self.tolerance):
                    return self._found(step, key, difference, other)
        return None

    @cached_property
    def _opened(self) -> Run | str:
        """The other run, or why it cannot be opened."""
        from tdbg_lab.run import open_run

        try:
            return open_run(self.other)
        except TdbgError as error:
            return str(error)

    def _difference(self, run: RunView, frame: Frame, key: TensorKey, other: Run) -> float | None:
        """Relative difference; infinite for other shapes, None when the other run has nothing there."""
        if key.name not in other.tensor_names():
            return None
        tensor = other.tensor(key.name)
        if frame.step not in tensor.steps(mode=frame.mode):
            return None
        own = run.raw(key.name, mode=frame.mode)
        if own is not None and frame.step in other.raw_steps(key.name, mode=frame.mode):
            theirs = np.asarray(tensor.value(frame.step, mode=frame.mode))
            return self._distance(np.asarray(own, np.float64), theirs.astype(np.float64))
        block = tensor.stats(frame.step, mode=frame.mode)
        mine = _told(frame.block, frame.index[key.name])
        return self._distance(mine, _told(block, 0))

    def _distance(self, one: np.ndarray, other: np.ndarray) -> float:
        if one.shape != other.shape:
            return float("inf")
        if self.classic:
            return 0.0 if np.allclose(one, other, equal_nan=True) else _relative(one, other)
        return _relative(one, other)

    def _found(self, step: int, key: TensorKey, difference: float, other: Run) -> Finding:
        return self.finding(
            step,
            f"{key.name} differs from that of {other.info.name} by {difference:.2e} of its size.",
            key=key,
            evidence={"relative_difference": difference, "other_run": other.info.name},
            advice=self._ADVICE,
            view=ViewRef("statistics", {"tensors": [key.name]}),
        )


def _told(block: StatsBlock, row: int) -> np.ndarray:
    if block.finite_count[row] != block.count[row]:
        return np.array([float(block.nan_count[row]), float(block.pos_inf_count[row])])
    return np.array([float(getattr(block, column)[row]) for column in _COLUMNS])


def _relative(one: np.ndarray, other: np.ndarray) -> float:
    """Size of the difference for the size of the values; NaN at the same places are the same."""
    same = np.isnan(one) & np.isnan(other)
    difference = np.where(same, 0.0, one - other)
    if not np.isfinite(difference).all():
        return float("inf")
    scale = float(np.linalg.norm(np.where(same, 0.0, other)))
    size = float(np.linalg.norm(difference))
    return size / scale if scale > 0 else float(np.sign(size)) * 1.0
